"""Ranges for other tools, through our own side of ITT and NVTX."""

from __future__ import annotations

import ctypes
import enum
import functools
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from pytest_opprof.capture.native import lib
from pytest_opprof.capture.native_calls import check
from pytest_opprof.capture.torch_ops import imported_torch

_SHAPES: Final = 1
_TORCHS_OWN_TEXT: Final = 2
_switching = threading.Lock()


class Target(enum.IntEnum):
    """Which interface a tool listens to."""

    ITT = 1
    NVTX = 2


def open_tool(target: Target) -> None:
    """Load the tool that the environment names for this interface; once is enough.

    A `CollectorError` names the variable if it names no tool that can be loaded.
    """
    check(lib.op_emit_open(target))


@contextmanager
def emitting(target: Target, *, record_shapes: bool, torchs_own_text: bool) -> Iterator[None]:
    """Emit our own ranges and torch's ops of all threads to the opened tool, until the block ends.

    With `torchs_own_text`, ops are named exactly as torch's own emitter names them.
    """
    torch = imported_torch()
    emitter = _emitter(torch) if torch is not None else None
    options = _SHAPES * record_shapes | _TORCHS_OWN_TEXT * torchs_own_text
    with ExitStack() as undo:
        lib.op_emit_start(target)
        undo.callback(lib.op_emit_stop, target)
        if emitter is not None:
            _switch(emitter, target, options, on=True)
            undo.callback(_switch, emitter, target, options, on=False)
        yield


def _switch(emitter: ctypes.PyDLL, target: Target, options: int, *, on: bool) -> None:
    with _switching:
        emitter.opprof_emitter_set(target, options, on)


@functools.cache
def _emitter(torch: Any) -> ctypes.PyDLL:
    from pytest_opprof.capture.observer_build import load  # noqa: PLC0415  # of no use without torch

    library = load(torch, part="emitter")
    library.opprof_emitter_set.argtypes = [ctypes.c_uint32, ctypes.c_uint32, ctypes.c_int]
    library.opprof_emitter_set.restype = None
    return library


def range_push(target: Target, message: str) -> int:
    """Begin a range on this thread; its depth, from 0."""
    depth: int = lib.op_emit_push(target, _text(message))
    return depth


def range_pop(target: Target) -> int:
    """End the range that this thread pushed last; its depth, or -1 if there is none."""
    depth: int = lib.op_emit_depth(target) - 1
    if depth >= 0:
        lib.op_emit_pop(target)
    return depth


def mark(target: Target, message: str) -> None:
    """Mark an instant."""
    lib.op_emit_mark(target, _text(message))


def _text(message: str) -> bytes:
    return message.encode("utf-8", "replace")
