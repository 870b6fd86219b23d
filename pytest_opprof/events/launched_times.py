"""Device time of events that were made by hand: added up from their kernels, in torch's order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_opprof.events.function_event import FunctionEvent


def launched_times(events: Iterable[FunctionEvent]) -> dict[int, float]:
    """Device time of events of the host: their kernels', and unless one is legacy those of all inside it.

    Each event's sum is its kernels' plus its children's sums, added in torch's order: in floats another order
    is another sum. Every event is worked out once, and without recursion, since they may lie very deep.

    Returns:
        Microseconds by the ``id()`` of each event and of everything inside it.
    """
    times: dict[int, float] = {}
    for root in events:
        work = [root]
        while work:
            event = work[-1]
            if id(event) not in times:
                waiting = [] if _has_own_kernels_only(event) else event.cpu_children
                waiting = [child for child in waiting if id(child) not in times]
                if waiting:
                    work += waiting
                    continue
                times[id(event)] = _added_up(event, times)
            work.pop()
    return times


def _has_own_kernels_only(event: FunctionEvent) -> bool:
    return bool(event.has_sums or event.is_async or event.is_legacy or not event.use_device)


def _added_up(event: FunctionEvent, times: Mapping[int, float]) -> float:
    if event.has_sums:
        return event.device_time_total
    if event.is_async or not event.use_device:
        return 0
    own = sum(kernel.duration for kernel in event.kernels)
    if event.is_legacy:
        return own
    return own + sum(times[id(child)] for child in event.cpu_children)
