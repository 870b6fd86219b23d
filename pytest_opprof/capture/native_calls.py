"""The one place where the collector's error codes become exceptions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.errors import CaptureBusyError, CaptureUnavailableError, CollectorError, RecoveryError

# cffi makes each function at its first use: in the first step of a process that would be memory of the step.
for _name in dir(lib):
    getattr(lib, _name)


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
