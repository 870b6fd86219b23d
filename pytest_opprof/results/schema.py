"""The contract of a document: its schema, one sentence on what is wrong, and older versions.

The schemas are files (``schemas/``) that other tools read too.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from pytest_opprof.errors import DocumentError
from pytest_opprof.results.document import RUN_KIND, RUN_SCHEMA_VERSION, refusal
from pytest_opprof.results.members import Document

if TYPE_CHECKING:
    from collections.abc import Iterable

_SCHEMAS = Path(__file__).resolve().parent.parent / "schemas"
_LONGEST_QUOTE = 60
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_COUNTED = {
    "minLength": "characters",
    "maxLength": "characters",
    "minItems": "entries",
    "maxItems": "entries",
    "maxProperties": "keys",
}
# The validator takes no lone surrogate in a key, such as a path that is not UTF-8: these stand for them.
_STAND_INS = {surrogate: 0xF0000 + surrogate for surrogate in range(0xD800, 0xE000)}
_RELEASE = re.compile(r"[0-9]+(\.[0-9A-Za-z]+){0,5}")


class Contract(StrEnum):
    """The kinds of documents; each has a schema file of its name."""

    RUN = "run"
    COMPARISON = "comparison"
    ACCEPTED = "accepted"
    FLEET_SUMMARY = "fleet-summary"
    FLEET_DIFFERENCE = "fleet-difference"

    @property
    def kind(self) -> str:
        """The name of this kind in documents."""
        return RUN_KIND if self is Contract.RUN else f"opprof-{self.value}"

    @property
    def schema_version(self) -> int:
        """The version that this release writes; it reads older ones too."""
        return RUN_SCHEMA_VERSION if self in {Contract.RUN, Contract.COMPARISON} else 1


def contract_of(document: object, *, where: str) -> Contract:
    """The contract that a document claims."""
    kind = document.get("kind") if isinstance(document, dict) else None
    for contract in Contract:
        if kind == contract.kind:
            return contract
    if isinstance(document, dict) and "traceEvents" in document:
        raise refusal(where, "this is a trace: `opprof trace show` prints it, and `to-run` makes it a run")
    raise refusal(where, f"this is not a file of pytest-opprof ('kind' is {_quoted(kind)})")


def validate(document: object, contract: Contract, *, where: str) -> Document:
    """Check a parsed document against its schema; one of an older version is upgraded in place.

    The DocumentError for a refused value has the value's JSON path.
    """
    found = contract_of(document, where=where)
    assert isinstance(document, dict), "contract_of refuses anything else"
    if found is not contract:
        raise refusal(where, f"this is a {found}, but a {contract} is needed")
    _refuse_newer(document, contract, where=where)
    upgraded(document, version=contract.schema_version)
    try:
        _validate(document, _validator(contract), where=where)
    except jsonschema_rs.ValidationError as found_error:
        error = _innermost(found_error)
        path = json_path(error.instance_path)
        place = f"{path}: " if path else ""
        raise refusal(where, f"{place}{_sentence(error)} ({contract}.schema.json)") from None
    return document


def json_path(parts: Iterable[str | int]) -> str:
    """A place in a document: ``tests[3].ops[17].count``; keys that are not names in brackets, escaped."""
    path = ""
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            path += f".{part}" if path else part
        else:
            path += f"[{_quoted(part)}]"
    return path


@functools.cache
def _schema(contract: Contract) -> Document:
    text = (_SCHEMAS / f"{contract}.schema.json").read_text(encoding="utf-8")
    schema: Document = json.loads(text)
    return schema


@functools.cache
def _validator(contract: Contract) -> jsonschema_rs.Draft202012Validator:
    schemas = jsonschema_rs.Registry([(_schema(each)["$id"], _schema(each)) for each in Contract])
    return jsonschema_rs.Draft202012Validator(_schema(contract), registry=schemas)


def _validate(document: Document, validator: jsonschema_rs.Draft202012Validator, *, where: str) -> None:
    # It stops at the first error: all those of a hostile document may fill the memory.
    try:
        validator.validate(document)
    except UnicodeEncodeError:
        text = json.dumps(document, ensure_ascii=False).translate(_STAND_INS)
        copy = json.loads(text)
        if json.dumps(copy, ensure_ascii=False) != text:
            raise refusal(where, "two keys of an object differ only in surrogates") from None
        validator.validate(copy)


def _refuse_newer(document: Document, contract: Contract, *, where: str) -> None:
    version, newest = document.get("schema_version"), contract.schema_version
    if not isinstance(version, int) or version <= newest:
        return
    writer = document.get("opprof_version")
    known = isinstance(writer, str) and _RELEASE.fullmatch(writer)
    release = f"'pytest-opprof>={writer}'" if known else "--upgrade pytest-opprof"
    raise DocumentError(
        f"{where}: {contract} schema version {_quoted(version)} is newer than {newest}, the newest that this "
        f"release reads. Install the release that wrote it: pip install {release}"
    )


def _innermost(error: jsonschema_rs.ValidationError) -> jsonschema_rs.ValidationError:
    """The error inside the branch of an anyOf that got furthest; "or null" is never what was meant."""
    while isinstance(error.kind, jsonschema_rs.ValidationErrorKind.AnyOf):
        inner = [each for branch in error.kind.context for each in branch]
        error = max(inner, key=lambda each: (each.kind.name != "type", len(each.instance_path)))
    return error


def _sentence(error: jsonschema_rs.ValidationError) -> str:
    value: Any = error.instance
    kind: Any = error.kind
    match kind.name:
        case "minimum" | "maximum":
            told = f"is {'less' if kind.name == 'minimum' else 'more'} than {kind.limit}"
        case "type":
            told = f"is not {'an' if kind.types[0][0] in 'aio' else 'a'} {' or '.join(kind.types)}"
        case "enum":
            told = f"is not one of {', '.join(map(str, kind.options))}"
        case "maxLength" | "maxItems" | "maxProperties":
            return f"{len(value)} {_COUNTED[kind.name]} are more than {kind.limit}"
        case "minLength" | "minItems":
            return f"{len(value)} {_COUNTED[kind.name]} are fewer than {kind.limit}"
        case "required":
            return f"{kind.property!r} is missing"
        case "propertyNames":
            return f"the key {_sentence(kind.error)}"
        case _:
            told = f"does not fit {_quoted(kind.value)}"
    return f"{_quoted(value)} {told}"


def _quoted(value: object) -> str:
    """A value of a hostile document in few printable characters."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = ascii(value) if value is not None else "null"
    return text if len(text) <= _LONGEST_QUOTE else f"{text[: _LONGEST_QUOTE - 3]}..."


# The members of a version 1 row that are metrics now, and their names.
_METRICS: Mapping[str, str] = {
    "count": "count",
    "views": "views",
    "cpu_time_total_ns": "cpu_time_total",
    "self_cpu_time_total_ns": "self_cpu_time_total",
    "cpu_memory": "cpu_memory",
    "device_memory": "device_memory",
    "flops": "flops",
}


def upgraded(document: dict[str, Any], *, version: int) -> dict[str, Any]:
    """A run or a comparison in the shape of ``version``, today's, upgraded in place.

    Version 1 had a member for each number of a row. The document is not validated yet: a part of another
    shape is left for the schema to refuse.
    """
    written = document.get("schema_version")
    if type(written) is int and written == 1 < version:
        for row in _rows(document):
            _upgrade(row)
        document["schema_version"] = version
    return document


def _rows(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of a run's tests, and of both sides of a comparison's."""
    for test in _objects(document.get("tests")):
        for side in (test, *_objects([test.get("base"), test.get("head")])):
            yield from _objects(side.get("ops"))


def _objects(found: Any) -> Iterator[dict[str, Any]]:
    if isinstance(found, list):
        yield from (each for each in found if isinstance(each, dict))


def _upgrade(row: dict[str, Any]) -> None:
    devices = row.pop("device", {})
    if not isinstance(devices, dict):
        row["metrics"] = devices
        return
    metrics = {new: row.pop(old) for old, new in _METRICS.items() if old in row} | devices
    # Times were also written for rows without times.
    row["metrics"] = {
        name: value
        for name, value in metrics.items()
        if name == "count" or type(value) is not int or value != 0
    }
