"""Values as JSON objects and back, member by member, each under its own name."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_opprof.results.samples import Samples

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Value = TypeVar("_Value", bound="DataclassInstance")
# A JSON object between the parser and the dataclasses; no further than those that read and write.
Document = dict[str, Any]


def to_members(value: DataclassInstance, /, **given: Any) -> Document:
    """All members of a value as JSON has them; those in `given` as they are given."""
    names = _names_of(type(value))
    return {name: given[name] if name in given else _to_json(getattr(value, name)) for name in names}


def from_members(kind: type[_Value], document: Mapping[str, Any], /, **given: Any) -> _Value:
    """A value of the members that this release knows; a later one may write more.

    A list is a tuple, and all else is as JSON has it, but for the members in `given`.
    """
    known = {
        name: tuple(document[name]) if isinstance(document[name], list) else document[name]
        for name in _names_of(kind)
        if name in document and name not in given
    }
    return kind(**known, **given)


def time_to_document(moment: datetime) -> str:
    """A moment in UTC, ISO 8601."""
    return moment.astimezone(UTC).isoformat()


@functools.cache
def _names_of(kind: type[DataclassInstance]) -> tuple[str, ...]:
    return tuple(member.name for member in fields(kind))


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
