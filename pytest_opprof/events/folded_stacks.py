"""Stacks with what they cost, a line each: what flamegraph.pl and its like read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from pytest_opprof.units import NS_IN_US

if TYPE_CHECKING:
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


def folded_lines(events: Iterable[FunctionEvent], metric: str, *, compat: Compat | None) -> Iterator[str]:
    """The lines of a file of stacks, outermost call first: ``main;forward 1500``.

    Args:
        events: What has stacks; the others are left out. A Python call stands in its own stack.
        metric: One of `METRICS`; all but the first are time on the device.
        compat: ``"torch"`` writes as torch does: a line for each event, whole microseconds, those below one
            left out, and Python calls charged to their callers.

    Yields:
        Lines. Equal stacks are one, with the sum of their nanoseconds.

    Raises:
        ValueError: There is no such metric. Torch raises the same.
    """
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
        own = (event.name or "",) if event.is_python_function else ()
        stack = (*own, *(event.stack or ()))
        time_ns = round(getattr(event, attribute) * NS_IN_US)
        if stack and time_ns > 0:
            sums[stack] = sums.get(stack, 0) + time_ns
    for stack, time_ns in sums.items():
        yield _line(reversed(stack), time_ns)


def _line(entries: Iterable[str], cost: int) -> str:
    return f"{';'.join(entry.translate(_CLEARED) for entry in entries)} {cost}\n"
