"""How torch.profiler reads Kineto's events: the rules behind ``compat="torch"``.

Torch hides some helper ops. It treats an event that ended on another thread, or never, as asynchronous. An
allocation counts for every event that was running, on any thread; outside all of them it is an event of its
own. A kernel belongs to the op that it names as its cause.

The source is ``profile._parse_kineto_results`` in torch/autograd/profiler.py of torch 2.13.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, MutableSequence, Sequence
from inspect import signature
from itertools import groupby
from typing import Any, Final

from pytest_opprof.errors import UsageError
from pytest_opprof.events.device import DEVICE_MEMORY, HOST_MEMORY, DeviceType
from pytest_opprof.events.function_event import FunctionEvent
from pytest_opprof.events.kineto_event import UNTOLD, KinetoEvent, device_of, is_set_aside, told
from pytest_opprof.events.names import (
    MEMORY_EVENT_NAME,
    OUT_OF_MEMORY_EVENT_NAME,
    filter_name,
    filter_stack_entry,
    rewrite_name,
)
from pytest_opprof.kinds import BACKWARD_SCOPE
from pytest_opprof.units import NS_IN_US

# Devices whose events count as kernels of the op that caused them.
_KERNEL_DEVICES: Final = frozenset({DeviceType.CUDA, DeviceType.PrivateUse1, DeviceType.XPU})
# Any other device but CUDA is a custom backend.
_OTHER_DEVICES: Final = frozenset({"xpu", "mtia", "hpu", "cpu"})
# Names that a method of Kineto's and an argument of an event share.
_SAME_NAMES: Final = UNTOLD.keys() & signature(FunctionEvent).parameters.keys()


class MemRecordsAcc:
    """Memory records in time order, as in torch's class of that name.

    Args:
        mem_records: Pairs of a record and whether it was assigned to an event yet.
    """

    def __init__(self, mem_records: Sequence[MutableSequence[Any]]) -> None:
        # The sort is stable: records of one time stay in the order given.
        self._records = sorted(mem_records, key=lambda pair: int(pair[0].start_ns()))
        self._start_ns = [int(pair[0].start_ns()) for pair in self._records]

    def in_interval(self, start_ns: int, end_ns: int) -> Iterator[MutableSequence[Any]]:
        """The pairs between two times on the records' clock, both included, in time order."""
        first = bisect_left(self._start_ns, start_ns)
        last = bisect_right(self._start_ns, end_ns)
        for place in range(first, last):
            yield self._records[place]


def torch_events(
    kineto_events: Iterable[KinetoEvent], *, trace_start_ns: int, use_device: str | None
) -> list[FunctionEvent]:
    """The events that torch shows, in start order, not nested yet, of events in Kineto's order and clock."""
    given = list(kineto_events)
    memory: list[list[Any]] = [[event, False] for event in given if event.name() == MEMORY_EVENT_NAME]
    failures = [event for event in given if event.name() == OUT_OF_MEMORY_EVENT_NAME]
    records = MemRecordsAcc(memory)
    shown: list[FunctionEvent] = []
    ops: list[FunctionEvent] = []
    caused: defaultdict[int, list[FunctionEvent]] = defaultdict(list)
    last_id = 0
    for kineto in given:
        if filter_name(kineto.name()) or told(kineto, "is_hidden_event"):
            continue
        event = _event_of(kineto, trace_start_ns, use_device)
        if event.device_type == DeviceType.CPU:
            for pair in records.in_interval(kineto.start_ns(), kineto.end_ns()):
                _add_memory(event, pair[0])
                pair[1] = True
            _add_elapsed_time(event, kineto)
        last_id = max(last_id, event.id)
        shown.append(event)
        cause = event.linked_correlation_id
        if cause < 0:
            raise UsageError(f"event {event.name!r} says that event {cause} caused it; give 0 for none")
        if cause:
            caused[cause].append(event)
        else:
            ops.append(event)
    _link(ops, caused)
    unused = [*(record for record, was_used in memory if not was_used), *failures]
    for number, record in enumerate(unused, last_id + 1):
        shown.append(_event_of_memory(record, number, trace_start_ns, use_device))
    shown.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
    return shown


def _event_of(kineto: KinetoEvent, trace_start_ns: int, use_device: str | None) -> FunctionEvent:
    facts: dict[str, Any] = {name: told(kineto, name) for name in _SAME_NAMES} | {
        "stack": [entry for entry in told(kineto, "stack") if filter_stack_entry(entry)],
        "is_async": is_set_aside(kineto),
        "device_type": device_of(kineto),
    }
    return FunctionEvent(
        id=told(kineto, "correlation_id"),
        name=rewrite_name(kineto.name(), with_wildcard=True),
        trace_name=rewrite_name(kineto.name()),
        thread=kineto.start_thread_id(),
        start_us=(kineto.start_ns() - trace_start_ns) / NS_IN_US,
        end_us=(kineto.end_ns() - trace_start_ns) / NS_IN_US,
        fwd_thread=told(kineto, "fwd_thread_id"),
        input_shapes=told(kineto, "shapes"),
        input_dtypes=told(kineto, "dtypes"),
        use_device=use_device,
        **facts,
    )


def _event_of_memory(
    record: KinetoEvent, number: int, trace_start_ns: int, use_device: str | None
) -> FunctionEvent:
    """A memory record as an event of its own, which is a host event even for device memory."""
    at_us = (record.start_ns() - trace_start_ns) / NS_IN_US
    event = FunctionEvent(
        id=number,
        name=record.name(),
        overload_name="",
        thread=record.start_thread_id(),
        start_us=at_us,
        end_us=at_us,
        fwd_thread=record.start_thread_id(),
        input_shapes=[],
        stack=[],
        use_device=use_device,
    )
    _add_memory(event, record)
    return event


def _add_memory(event: FunctionEvent, record: KinetoEvent) -> None:
    device = device_of(record)
    if device in HOST_MEMORY:
        event.cpu_memory_usage += told(record, "nbytes")
    elif device in DEVICE_MEMORY:
        event.device_memory_usage += told(record, "nbytes")


def _add_elapsed_time(event: FunctionEvent, kineto: KinetoEvent) -> None:
    """If Kineto saw no kernels, the time between two marks on the device stands in for one."""
    if event.is_async or event.use_device is None or event.use_device in _OTHER_DEVICES:
        return
    on_cuda = event.use_device == "cuda"
    elapsed_us = told(kineto, "cuda_elapsed_us" if on_cuda else "privateuse1_elapsed_us")
    if elapsed_us > 0:
        event.append_kernel(event.name, event.device_index, elapsed_us)
        event.is_legacy = True


def _link(ops: Sequence[FunctionEvent], caused: dict[int, list[FunctionEvent]]) -> None:
    """Give each op the device work that it caused, and move its runtime calls to its thread."""
    for op in ops:
        if op.device_type != DeviceType.CPU or op.is_async:
            continue
        for effect in caused.get(op.id, ()):
            if effect.device_type in _KERNEL_DEVICES:
                op.append_kernel(effect.name, effect.device_index, effect.time_range.elapsed_us())
            elif effect.device_type == DeviceType.CPU:
                effect.thread = op.thread


def nest(events: Sequence[FunctionEvent]) -> list[FunctionEvent]:
    """Nest events by time, and return them without those that only repeat the event around them.

    An op whose only child has the same name replaces that child: it takes over its children and kernels.
    Backward ops get the stack of their forward op. The source, which raises the same errors, is
    ``EventList._build_tree`` in torch/autograd/profiler_util.py of torch 2.13, minus its recursion.
    """
    _link_children(events)
    left = list(events)
    while len(kept := [event for event in left if not _was_lifted(event)]) < len(left):
        left = kept
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
        op = None if current is None else found.get(id(current), current)
        found.update((id(inside), op) for inside in (*path, event))
    return found
