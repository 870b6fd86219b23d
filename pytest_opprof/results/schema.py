"""The contract of a document: what it may hold, and one sentence on what is wrong with it.

The schemas are files (``schemas/``) that other tools read too. What `quick_check` refuses, jsonschema
explains: it is imported for that alone.
"""

from __future__ import annotations

import functools
import json
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_opprof.errors import DocumentError
from pytest_opprof.results.document import RUN_KIND, RUN_SCHEMA_VERSION, refusal
from pytest_opprof.results.members import Document
from pytest_opprof.results.quick_check import QuickCheck, compiled
from pytest_opprof.results.upgrade import upgraded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

_SCHEMAS = Path(__file__).resolve().parent.parent / "schemas"
_LONGEST_QUOTE = 60
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_COUNTED = {"maxLength": "characters", "maxItems": "entries", "maxProperties": "keys"}
_RELEASE = re.compile(r"[0-9]+(\.[0-9A-Za-z]+){0,5}")


class Contract(StrEnum):
    """The kinds of documents there are; each has a schema file of its name."""

    RUN = "run"
    COMPARISON = "comparison"
    ACCEPTED = "accepted"
    FLEET_SUMMARY = "fleet-summary"
    FLEET_DIFFERENCE = "fleet-difference"

    @property
    def kind(self) -> str:
        """What a document of this kind calls itself."""
        return RUN_KIND if self is Contract.RUN else f"opprof-{self.value}"

    @property
    def schema_version(self) -> int:
        """The version that this release writes; it reads older ones too."""
        return RUN_SCHEMA_VERSION if self in {Contract.RUN, Contract.COMPARISON} else 1


def contract_of(document: object, *, where: str) -> Contract:
    """The contract that a document says it keeps.

    Raises:
        DocumentError: It is not a document of ours.
    """
    kind = document.get("kind") if isinstance(document, dict) else None
    for contract in Contract:
        if kind == contract.kind:
            return contract
    if isinstance(document, dict) and "traceEvents" in document:
        raise refusal(where, "this is a trace: `opprof trace show` prints it, and `to-run` makes it a run")
    raise refusal(where, f"this is not a document of pytest-opprof ('kind' is {_quoted(kind)})")


def validate(document: object, contract: Contract, *, where: str) -> Document:
    """Check a parsed document against its schema.

    Args:
        document: What the JSON parser gave.
        where: What an error calls it: its file.

    Returns:
        The same document. One of an older version was changed to today's, in place.

    Raises:
        DocumentError: Another kind of document, a newer version, or a value that the schema refuses, with the
            value's JSON path.
    """
    found = contract_of(document, where=where)
    assert isinstance(document, dict), "contract_of refuses anything else"
    if found is not contract:
        raise refusal(where, f"this is a {found}, and a {contract} is needed")
    _refuse_newer(document, contract, where=where)
    upgraded(document, version=contract.schema_version)
    if _quick_check(contract).accepts(document):
        return document
    suspect, first = _suspect(document, contract)
    error = next(_validator(contract).iter_errors(suspect), None)
    if error is not None:
        error = _innermost(error)
        path = json_path(_moved(error.absolute_path, first))
        place = f"{path}: " if path else ""
        raise refusal(where, f"{place}{_sentence(error)} ({contract}.schema.json)")
    return document


def _suspect(document: Document, contract: Contract) -> tuple[Document, int]:
    """As little of a refused document as shows why, and which test its only one is.

    jsonschema takes milliseconds for each test, and of a hostile document the last of thousands is wrong.
    """
    check, tests = _quick_check(contract), document.get("tests")
    without = {**document, "tests": []}
    if not isinstance(tests, list):
        return document, 0
    if not check.accepts(without):
        return without, 0
    for at, test in enumerate(tests):
        one = {**document, "tests": [test]}
        if not check.accepts(one):
            return one, at
    return document, 0


def _moved(path: Iterable[str | int], first: int) -> Iterator[str | int]:
    """A place in the whole document, of which only the test at `first` was looked at."""
    before: str | int = ""
    for at, part in enumerate(path):
        yield part + first if at == 1 and before == "tests" and isinstance(part, int) else part
        before = part


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
def _quick_check(contract: Contract) -> QuickCheck:
    schemas = {_schema(each)["$id"]: _schema(each) for each in Contract}
    return QuickCheck(_schema(contract), others=schemas)


@functools.cache
def _validator(contract: Contract) -> Validator:
    import jsonschema  # noqa: PLC0415 - see the module's docstring
    from referencing import Registry, Resource  # noqa: PLC0415

    # JSON Schema takes 5.0 for an integer. We write none, and arithmetic on one would not be exact.
    standard = jsonschema.Draft202012Validator
    extend: Any = jsonschema.validators.extend
    strict = extend(
        standard,
        validators={"pattern": _pattern},
        type_checker=standard.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int),
    )
    registry: Any = Registry()
    for each in Contract:
        schema = _schema(each)
        registry = registry.with_resource(schema["$id"], Resource.from_contents(schema))
    validator: Validator = strict(_schema(contract), registry=registry)
    return validator


def _pattern(_: object, pattern: str, value: object, schema: Mapping[str, Any]) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError  # noqa: PLC0415 - as above

    if isinstance(value, str) and not compiled(pattern).search(value):
        yield ValidationError(f"{value!r} does not match {schema['pattern']!r}")


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


def _innermost(error: ValidationError) -> ValidationError:
    """The error inside the branch of an anyOf that got furthest; "or null" is never what was meant."""
    while error.context:
        error = max(error.context, key=lambda inner: (inner.validator != "type", len(inner.absolute_path)))
    return error


def _sentence(error: ValidationError) -> str:
    value: Any = error.instance
    limit: Any = error.validator_value
    match error.validator:
        case "minimum":
            told = f"is less than {limit}"
        case "maximum":
            told = f"is more than {limit}"
        case "type":
            kinds = [limit] if isinstance(limit, str) else limit
            told = f"is not {'an' if kinds[0][0] in 'aio' else 'a'} {' or '.join(kinds)}"
        case "enum":
            told = f"is none of {', '.join(map(str, limit))}"
        case "maxLength" | "maxItems" | "maxProperties":
            return f"{len(value)} {_COUNTED[error.validator]} are more than {limit}"
        case "minItems":
            return f"{len(value)} entries are fewer than {limit}"
        case "required":
            return f"{next(name for name in limit if name not in value)!r} is missing"
        case _:
            told = f"does not fit {_quoted(limit)}"
    return f"{_quoted(value)} {told}"


def _quoted(value: object) -> str:
    """A value of a hostile document in few printable characters."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = ascii(value) if value is not None else "null"
    return text if len(text) <= _LONGEST_QUOTE else f"{text[: _LONGEST_QUOTE - 3]}..."
