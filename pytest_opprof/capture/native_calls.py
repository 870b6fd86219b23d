"""The collector's names, texts, columns and error codes, as Python objects and exceptions."""

from __future__ import annotations

import functools
import itertools
import struct
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.errors import CaptureBusyError, CaptureUnavailableError, CollectorError, RecoveryError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Value = TypeVar("_Value", bound="DataclassInstance")

# cffi makes each function at its first use, which would count as memory of the process's first step.
for _name in dir(lib):
    getattr(lib, _name)


def view_of(
    result: Any, pointer: Any, *, count: int, code: Literal["q", "I", "i", "H", "B"]
) -> memoryview[int]:
    """A read-only view of a column of a `struct` type, which keeps its native result alive."""
    held = ffi.gc(ffi.cast("char *", pointer), functools.partial(_hold, result))
    return memoryview(ffi.buffer(held, count * struct.calcsize(code))).toreadonly().cast(code)


def _hold(_owner: object, _pointer: object) -> None:
    """The destructor of a borrowed pointer; until it runs, it keeps its first argument alive."""


def value_of(kind: type[_Value], row: Any, /, **given: Any) -> _Value:
    """A dataclass whose members are those of a native row, except for those in `given`."""
    return kind(**{name: given[name] if name in given else getattr(row, name) for name in names_of(kind)})


@functools.cache
def names_of(kind: type[DataclassInstance]) -> tuple[str, ...]:
    """The names of a dataclass's members."""
    return tuple(member.name for member in fields(kind))


def text_at(pointer: Any) -> str:
    """The text at a native pointer."""
    text: str = ffi.string(pointer).decode("utf-8", "replace")
    return text


def numbered_texts(pointer_to: Callable[[int], Any]) -> tuple[str, ...]:
    """The native texts of 0, 1 and so on, up to the first number without one."""
    pointers = map(pointer_to, itertools.count())
    return tuple(map(text_at, itertools.takewhile(lambda pointer: pointer != ffi.NULL, pointers)))


def last_error() -> str:
    """The native sentence behind this thread's latest error code."""
    return text_at(lib.op_last_error())


def check(code: int) -> None:
    """Raise the exception for a native error code; a `CollectorError` for those without their own."""
    if code == lib.OP_OK:
        return
    if code == lib.OP_EBUSY:
        raise CaptureBusyError(last_error())
    if code == lib.OP_EUNSEEN:
        raise CaptureUnavailableError(last_error())
    if code == lib.OP_EFORMAT:
        raise RecoveryError(last_error())
    raise CollectorError(last_error())


@functools.lru_cache(maxsize=1 << 16)
def name_text(name_id: int) -> str:
    """The text of an interned name."""
    length = ffi.new("uint32_t *")
    pointer = lib.op_name_text(name_id, length)
    raw = bytes(ffi.buffer(pointer, length[0]))
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:  # a C library's range, in an encoding of its own
        return raw.decode("utf-8", "backslashreplace")


def printable(text: str) -> str:
    """The text as valid UTF-8, as readers require: a lone surrogate is escaped."""
    return text.encode("utf-8", "backslashreplace").decode()
