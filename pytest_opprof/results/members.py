"""Values as JSON objects and back, member by member, each under its own name."""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from pytest_opprof.results.samples import Samples

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Value = TypeVar("_Value", bound="DataclassInstance")
# A JSON object between the parser and the dataclasses, only in the modules that read and write.
Document = dict[str, Any]


def to_members(value: DataclassInstance, /, **given: Any) -> Document:
    """All members of a value in JSON's types; those in `given` replace its own."""
    names = _names_of(type(value))
    return {name: given[name] if name in given else _to_json(getattr(value, name)) for name in names}


def from_members(kind: type[_Value], document: Mapping[str, Any], /, **given: Any) -> _Value:
    """A value from the members that this release knows; a later release may write more.

    A list becomes a tuple; enums and dataclasses are read as such; all else stays as in JSON, except the
    members in `given`.
    """
    known = {
        name: _from_json(document[name], of)
        for name, of in _kinds_of(kind).items()
        if name in document and name not in given
    }
    return kind(**known, **given)


def time_to_document(moment: datetime) -> str:
    """A moment in UTC, ISO 8601."""
    return moment.astimezone(UTC).isoformat()


@functools.cache
def _names_of(kind: type[DataclassInstance]) -> tuple[str, ...]:
    return tuple(member.name for member in fields(kind))


@functools.cache
def _kinds_of(kind: type[DataclassInstance]) -> dict[str, Any]:
    """The type of each member: without None if optional, and of a tuple that of its entries."""
    hints = get_type_hints(kind)
    return {name: (get_args(hints[name]) or (hints[name],))[0] for name in _names_of(kind)}


def _from_json(value: Any, kind: Any) -> Any:
    if isinstance(value, list):
        return tuple(_from_json(each, kind) for each in value)
    if value is None or not isinstance(kind, type):
        return value
    if is_dataclass(kind):
        return from_members(kind, value)
    return kind(value) if issubclass(kind, Enum) else value


def _to_json(value: Any) -> Any:
    json: Any
    match value:
        case Enum():
            json = value.value
        case None | str() | int():
            json = value
        case Samples():
            json = value.to_document()
        case datetime():
            json = time_to_document(value)
        case tuple():
            json = [_to_json(each) for each in value]
        case Mapping():
            json = {name: _to_json(each) for name, each in value.items()}
        case _:
            json = to_members(value)
    return json


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Make values without cycles: a document's rows, or values made from them.

    Python searches for cycles after every so many new objects. Among a million rows it searches all again and
    again, which takes as long as reading them. If the collector is off already, nothing changes.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
