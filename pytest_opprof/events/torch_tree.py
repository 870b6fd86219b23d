"""Nest events by time as torch does, for lists of events that do not come from a recording.

The source is ``EventList._build_tree`` in torch/autograd/profiler_util.py of torch 2.13, minus its recursion.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from pytest_opprof.capture.event_flags import BACKWARD_SCOPE
from pytest_opprof.events.device import DeviceType
from pytest_opprof.events.function_event import FunctionEvent


def nest(events: Sequence[FunctionEvent]) -> list[FunctionEvent]:
    """Nest events by time, and leave out those that only repeat the event around them.

    An op whose only child has the same name replaces that child: it takes over its children and kernels.
    Backward ops get the stack of their forward op.

    Returns:
        The remaining events, in the order given.

    Raises:
        AssertionError: An event was nested before, or a backward op has no thread of its forward op. Torch
            raises the same.
    """
    _link_children(events)
    left = _without_repeats(events)
    _copy_forward_stacks(left)
    return left


def _link_children(events: Sequence[FunctionEvent]) -> None:
    # An async event ends on another thread than it began, so nothing is known to be inside it.
    nestable = [event for event in events if not event.is_async and event.device_type == DeviceType.CPU]
    nestable.sort(key=lambda event: event.thread)
    for _, group in groupby(nestable, key=lambda event: (event.thread, event.node_id)):
        around: list[FunctionEvent] = []
        for event in sorted(group, key=lambda event: (event.time_range.start, -event.time_range.end)):
            times = event.time_range
            # Each event on the stack lies within the one below it. One that the new event does not lie within
            # is removed, even if they overlap, and so holds no later event.
            while around and (
                times.start >= around[-1].time_range.end or times.end > around[-1].time_range.end
            ):
                around.pop()
            if around:
                around[-1].append_cpu_child(event)
                if event.cpu_parent is not None:
                    raise AssertionError(f"There is already a CPU parent event for {event.key}")
                event.set_cpu_parent(around[-1])
            around.append(event)


def _without_repeats(events: Sequence[FunctionEvent]) -> list[FunctionEvent]:
    left = list(events)
    while True:
        kept = [event for event in left if not _was_lifted(event)]
        if len(kept) == len(left):
            return kept
        left = kept


def _was_lifted(event: FunctionEvent) -> bool:
    """Merge an only child into a parent of the same name; whether that was done."""
    parent = event.cpu_parent
    if parent is None or parent.name != event.name or len(parent.cpu_children) != 1:
        return False
    parent.cpu_children = event.cpu_children
    parent.kernels = event.kernels
    for child in event.cpu_children:
        child.cpu_parent = parent
    return True


def _copy_forward_stacks(events: Sequence[FunctionEvent]) -> None:
    backward = _backward_ops(events)
    stacks: dict[tuple[int, int | None], list[str]] = {}
    for event in events:
        if backward[id(event)] is None and event.stack is not None:
            stacks.setdefault((event.sequence_nr, event.thread), event.stack)
    for event in events:
        op = backward[id(event)]
        if op is not None:
            if op.fwd_thread is None:
                raise AssertionError("Expected fwd_thread to be set for backward parent")
            event.stack = stacks.get((op.sequence_nr, op.fwd_thread), [])


def _backward_ops(events: Sequence[FunctionEvent]) -> dict[int, FunctionEvent | None]:
    """By the ``id()`` of each event, the innermost backward op that it is or lies in; None for none."""
    found: dict[int, FunctionEvent | None] = {}
    for event in events:
        path: list[FunctionEvent] = []
        current: FunctionEvent | None = event
        while current is not None and id(current) not in found and current.scope != BACKWARD_SCOPE:
            path.append(current)
            current = current.cpu_parent
        known = current is not None and id(current) in found
        op = found[id(current)] if known else current
        found.update((id(inside), op) for inside in path)
        found[id(event)] = op
    return found
