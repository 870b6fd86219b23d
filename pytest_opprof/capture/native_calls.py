"""What the collector gives, for Python: texts, columns, and exceptions where it gives error codes."""

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

# cffi makes each function at its first use: in the first step of a process that would be memory of the step.
for _name in dir(lib):
    getattr(lib, _name)


def view_of(
    result: Any, pointer: Any, *, count: int, code: Literal["q", "I", "i", "H", "B"]
) -> memoryview[int]:
    """A read-only view of a column.

    Args:
        result: The native result that the column belongs to. It lives as long as the view.
        code: Their type, as `struct` has it.
    """
    held = ffi.gc(ffi.cast("char *", pointer), functools.partial(_hold, result))
    return memoryview(ffi.buffer(held, count * struct.calcsize(code))).toreadonly().cast(code)


def _hold(_owner: object, _pointer: object) -> None:
    """The destructor of a borrowed pointer: what it keeps alive until then is its first argument."""


def value_of(kind: type[_Value], row: Any, /, **given: Any) -> _Value:
    """A value whose members a native row has under the same names, but for those in `given`."""
    return kind(**{name: given[name] if name in given else getattr(row, name) for name in names_of(kind)})


@functools.cache
def names_of(kind: type[DataclassInstance]) -> tuple[str, ...]:
    """The members of a dataclass."""
    return tuple(member.name for member in fields(kind))


def text_at(pointer: Any) -> str:
    """The text that the native side has somewhere."""
    text: str = ffi.string(pointer).decode("utf-8", "replace")
    return text


def numbered_texts(pointer_to: Callable[[int], Any]) -> tuple[str, ...]:
    """The texts of 0, 1 and so on, up to the first number that the native side has none for."""
    pointers = map(pointer_to, itertools.count())
    return tuple(map(text_at, itertools.takewhile(lambda pointer: pointer != ffi.NULL, pointers)))


def last_error() -> str:
    """The native sentence behind this thread's latest error code."""
    return text_at(lib.op_last_error())


def check(code: int) -> None:
    """Raise what a native return code means.

    Raises:
        CaptureBusyError: A window is open already.
        CaptureUnavailableError: This process does not let it be recorded.
        RecoveryError: A file is not a session file of this version.
        CollectorError: Anything else, such as no memory.
    """
    if code == lib.OP_OK:
        return
    if code == lib.OP_EBUSY:
        raise CaptureBusyError(last_error())
    if code == lib.OP_EUNSEEN:
        raise CaptureUnavailableError(last_error())
    if code == lib.OP_EFORMAT:
        raise RecoveryError(last_error())
    raise CollectorError(last_error())
