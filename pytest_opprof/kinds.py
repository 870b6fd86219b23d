"""The kinds, flags and scopes of events, as the collector numbers them, and the kinds of a result's rows."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# Bits of an event's flags, and numbers of its scope.
FLAG_CROSSING: Final = 0x01  # a call that overlaps an op or range in part
FLAG_VIEW: Final = 0x02  # an op
FLAG_ASYNC: Final = 0x10
FLAG_UNFINISHED: Final = 0x20
FLAG_BACKGROUND: Final = 0x40
FLAG_CREDITED: Final = 0x80
BACKWARD_SCOPE: Final = 1  # torch's RecordScope::BACKWARD_FUNCTION: a node of autograd
USER_SCOPE: Final = 7  # torch's RecordScope::USER_SCOPE: a range that somebody named


class OpKind(enum.StrEnum):
    """The kind of a result's row."""

    OP = "op"  # an op or an autograd node of torch
    RANGE = "range"  # record_function, range_push, ITT tasks, NVTX ranges
    CALL = "call"  # a Python or C function, a call of a device's runtime
    KERNEL = "kernel"  # device work other than copies and fills
    MEMCPY = "memcpy"
    MEMSET = "memset"

    @property
    def is_on_device(self) -> bool:
        """Whether it ran on a device, and has no time on the host."""
        return self in _ON_DEVICE


_ON_DEVICE = frozenset({OpKind.KERNEL, OpKind.MEMCPY, OpKind.MEMSET})


class EventKind(enum.IntEnum):
    """Where an event comes from."""

    RANGE = 1
    TORCH = 2
    ITT = 3
    NVTX = 4
    PYTHON_CALL = 5
    C_CALL = 6
    MARK = 7
    MEMORY = 8
    RUNTIME = 9
    DRIVER = 10
    KERNEL = 11
    MEMCPY = 12
    MEMSET = 13
    SYNC = 14
    DEVICE_RANGE = 15

    @property
    def is_on_device(self) -> bool:
        """Whether it ran on a device and not on the host."""
        return self >= EventKind.KERNEL

    @property
    def is_work(self) -> bool:
        """Whether it is a kernel, copy or fill of a device: a wait is not work, a range consists of work."""
        return self.op_kind in _ON_DEVICE

    @property
    def op_kind(self) -> OpKind | None:
        """The kind of the event's row; None for an instant, a wait, or a range on a device."""
        return _OP_KINDS.get(self)


PYTHON_CALLS = frozenset({EventKind.PYTHON_CALL, EventKind.C_CALL})
_OP_KINDS: Mapping[EventKind, OpKind] = MappingProxyType(
    {
        EventKind.RANGE: OpKind.RANGE,
        EventKind.TORCH: OpKind.OP,
        EventKind.ITT: OpKind.RANGE,
        EventKind.NVTX: OpKind.RANGE,
        EventKind.PYTHON_CALL: OpKind.CALL,
        EventKind.C_CALL: OpKind.CALL,
        EventKind.RUNTIME: OpKind.CALL,
        EventKind.DRIVER: OpKind.CALL,
        EventKind.KERNEL: OpKind.KERNEL,
        EventKind.MEMCPY: OpKind.MEMCPY,
        EventKind.MEMSET: OpKind.MEMSET,
    }
)
DEVICE_WORK = frozenset(kind for kind in EventKind if kind.is_work)
