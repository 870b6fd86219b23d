"""Stacks with what they cost, a line each: what flamegraph.pl and its like read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from pytest_opprof.capture.cpp_stacks import down_to_python
from pytest_opprof.errors import UsageError
from pytest_opprof.units import NS_IN_US

if TYPE_CHECKING:
    from pytest_opprof.capture.stack_kinds import StackKind
    from pytest_opprof.events.columns import Compat
    from pytest_opprof.events.function_event import FunctionEvent

METRICS: Final = (
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
)
# Spaces part the stack from its cost, semicolons its entries.
_CLEARED: Final = str.maketrans(" ;\t\n", "____")


def folded_lines(
    events: Iterable[FunctionEvent], metric: str, *, compat: Compat | None, stacks: StackKind = "python"
) -> Iterator[str]:
    """The lines of a file of stacks, outermost call first: ``main;forward 1500``.

    Args:
        events: What has stacks; the others are left out. A Python call stands in its own stack.
        metric: One of `METRICS`; all but the first are time on the device.
        compat: ``"torch"`` writes as torch does: a line for each event, whole microseconds, those below one
            left out, and Python calls charged to their callers.
        stacks: Which: ``"all"`` has the C++ functions inside of the innermost Python call above its stack.

    Yields:
        Lines. Equal stacks are one, with the sum of their nanoseconds.

    Raises:
        ValueError: There is no such metric. Torch raises the same.
        UsageError: There is no such kind of stacks, or torch does not write it.
    """
    if stacks not in _ENTRIES or (compat == "torch" and stacks != "python"):
        raise UsageError(f"stacks is {stacks!r}; there are {', '.join(_ENTRIES)}, and torch writes python")
    if metric not in METRICS:
        raise ValueError(f"metric should be one of: {list(METRICS)}")
    attribute = METRICS[0] if metric == METRICS[0] else "self_device_time_total"
    if compat == "torch":
        for event in events:
            time_us = int(getattr(event, attribute))
            if event.stack and time_us > 0:
                yield _line(reversed(event.stack), time_us)
        return
    sums: dict[tuple[str, ...], int] = {}
    for event in events:
        stack = _ENTRIES[stacks](event)
        time_ns = round(getattr(event, attribute) * NS_IN_US)
        if stack and time_ns > 0:
            sums[stack] = sums.get(stack, 0) + time_ns
    for stack, time_ns in sums.items():
        yield _line(reversed(stack), time_ns)


def _of_python(event: FunctionEvent) -> tuple[str, ...]:
    own = (event.name or "",) if event.is_python_function else ()
    return (*own, *(event.stack or ()))


def _of_cpp(event: FunctionEvent) -> tuple[str, ...]:
    return tuple(frame.name for frame in event.cpp_frames)


def _of_both(event: FunctionEvent) -> tuple[str, ...]:
    return (*(frame.name for frame in down_to_python(event.cpp_frames)), *_of_python(event))


_ENTRIES: Final[Mapping[StackKind, Callable[[FunctionEvent], tuple[str, ...]]]] = {
    "python": _of_python,
    "cpp": _of_cpp,
    "all": _of_both,
}


def _line(entries: Iterable[str], cost: int) -> str:
    return f"{';'.join(entry.translate(_CLEARED) for entry in entries)} {cost}\n"
