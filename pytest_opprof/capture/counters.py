"""Counters of the processor and the kernel, and which of them can be counted here."""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_opprof.capture.native import ffi, lib, require
from pytest_opprof.capture.native_calls import last_error, numbered_texts
from pytest_opprof.errors import UsageError

_FALLBACK: Final = "task-clock"
_SOFTWARE: Final = frozenset({"pagefaults", "task-clock", "context-switches", "cpu-migrations"})
_PARANOID: Final = Path("/proc/sys/kernel/perf_event_paranoid")
MOST: Final[int] = lib.OP_COUNTERS_MAX
COUNTERS: Final = numbered_texts(lib.op_counter_name)


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterChoice:
    """What a window counts."""

    counted: tuple[str, ...] = ()  # from `COUNTERS`, at most `MOST`
    problem: str | None = None  # why that differs from the request; None if it does not


def check_counters(names: Sequence[str]) -> None:
    """Raise a `UsageError` if a counter is unknown, or there are more than `MOST`."""
    if isinstance(names, str):
        raise UsageError(f"performance_events is {names!r}; give a list of names, such as [{names!r}]")
    unknown = sorted(set(names) - set(COUNTERS))
    if unknown:
        require()  # without a collector, no counter is known
        raise UsageError(f"unknown counter {unknown[0]!r}: there are {', '.join(COUNTERS)}")
    if len(set(names)) > MOST:
        raise UsageError(f"{len(set(names))} counters were asked for; at most {MOST} are counted at once")


@functools.cache
def refusal(name: str) -> str | None:
    """Why the kernel refuses this counter, for the end of a sentence; None if it does not."""
    number = lib.op_counter_refusal(COUNTERS.index(name))
    return None if number == 0 else _reason(number)


def _reason(number: int) -> str:
    if number in {errno.EACCES, errno.EPERM}:
        level = _PARANOID.read_text(encoding="ascii").strip() if _PARANOID.exists() else "unknown"
        return (
            f"not allowed: kernel.perf_event_paranoid is {level} (2 or less is needed), "
            "or a container's filter forbids perf_event_open"
        )
    if number in {errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP}:
        return "this machine has no such counter (many virtual machines have none)"
    if number == errno.ENOSYS:
        return "the kernel was built without perf_event_open, or a container's filter hides it"
    return os.strerror(number)


def choose(names: Sequence[str]) -> CounterChoice:
    """Count these in all following windows.

    "task-clock" (nanoseconds on a processor), under its own name, replaces refused counters of the processor.
    """
    check_counters(names)
    asked = tuple(dict.fromkeys(names))
    refused = {name: reason for name in asked if (reason := refusal(name)) is not None}
    counted = [name for name in asked if name not in refused]
    stands_in = not refused.keys() <= _SOFTWARE and refusal(_FALLBACK) is None
    if stands_in and _FALLBACK not in counted:
        counted.append(_FALLBACK)
    numbers = [COUNTERS.index(name) for name in counted]
    if lib.op_window_count(numbers, len(numbers)) != lib.OP_OK:
        problem = last_error()
        lib.op_window_count(ffi.NULL, 0)
        return CounterChoice(problem=f"nothing is counted: {problem}")
    if not refused:
        return CounterChoice(counted=tuple(counted))
    reasons = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
    instead = f"; {_FALLBACK} is counted instead" if stands_in else ""
    return CounterChoice(counted=tuple(counted), problem=f"{reasons}{instead}")
