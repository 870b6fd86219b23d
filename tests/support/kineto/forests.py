"""Recordings made by hand, and strategies that generate them, for the events' tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from pytest_opprof.capture.inputs import Inputs
from pytest_opprof.capture.op_groups import OpGroup
from pytest_opprof.capture.window import MemoryChange, OpenCall, RecordingStats, StepInfo, ThreadInfo
from pytest_opprof.events.names import summed_name
from pytest_opprof.kinds import FLAG_ASYNC, FLAG_UNFINISHED, EventKind

USER_SCOPE = 7
# An eighth of a microsecond has an exact binary fraction: sums of such times are the same in any order, in
# torch's floats as in our integers.
UNIT_NS = 125
# Threads never start events at the same time, because the order of two such events is undefined.
MOST_THREADS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One event as a test writes it."""

    name: str
    start_ns: int
    end_ns: int
    thread: int = 0
    scope: int = 0
    is_async: bool = False
    is_unfinished: bool = False
    is_background: bool = False
    sequence_nr: int = -1
    step: int = -1
    shapes: list[Any] | None = None


@dataclass(slots=True)
class _HandMade:
    """A recording whose columns are computed from spans, with the collector's meaning of each."""

    spans: list[Span]
    steps: tuple[StepInfo, ...] = ()
    dropped: int = 0
    truncated: bool = False
    names_overflowed: int = 0
    device_dropped: int = 0
    device_partial: bool = False
    trace_end_ns: int = 0
    first_id: int = 0
    parent: list[int] = field(init=False)
    duration_ns: list[int] = field(init=False)
    self_ns: list[int] = field(init=False)
    group_calls: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.spans = sorted(self.spans, key=lambda span: (span.thread, span.start_ns, -span.end_ns))
        self.trace_end_ns = max([self.trace_end_ns, *(span.end_ns for span in self.spans)])
        self.duration_ns = [-1 if span.is_unfinished else span.end_ns - span.start_ns for span in self.spans]
        self.parent = self._parents()
        apart = [span.is_async or span.is_unfinished for span in self.spans]
        self.self_ns = [0 if apart[i] else duration for i, duration in enumerate(self.duration_ns)]
        for i, parent in enumerate(self.parent):
            if parent >= 0 and not apart[i] and not apart[parent]:
                self.self_ns[parent] -= self.duration_ns[i]

    def _parents(self) -> list[int]:
        parents: list[int] = []
        open_events: list[int] = []
        for i, span in enumerate(self.spans):
            while open_events and (
                self.spans[open_events[-1]].thread != span.thread
                or self.spans[open_events[-1]].end_ns < span.end_ns
                or self.spans[open_events[-1]].end_ns <= span.start_ns
            ):
                open_events.pop()
            parents.append(next((j for j in reversed(open_events) if not self.spans[j].is_async), -1))
            open_events.append(i)
        return parents

    def __len__(self) -> int:
        return len(self.spans)

    @property
    def start_ns(self) -> list[int]:
        return [span.start_ns for span in self.spans]

    @property
    def thread(self) -> list[int]:
        return [span.thread for span in self.spans]

    @property
    def sequence_nr(self) -> list[int]:
        return [span.sequence_nr for span in self.spans]

    @property
    def forward_thread(self) -> list[int]:
        return [0] * len(self.spans)

    @property
    def step(self) -> list[int]:
        return [span.step for span in self.spans]

    @property
    def launcher(self) -> list[int]:
        return [-1] * len(self.spans)

    @property
    def line(self) -> list[int]:
        return [0] * len(self.spans)

    @property
    def open_calls(self) -> list[OpenCall]:
        return []

    @property
    def kind(self) -> list[int]:
        return [EventKind.RANGE if span.scope == USER_SCOPE else EventKind.TORCH for span in self.spans]

    @property
    def flags(self) -> list[int]:
        return [FLAG_ASYNC * span.is_async | FLAG_UNFINISHED * span.is_unfinished for span in self.spans]

    @property
    def scope(self) -> list[int]:
        return [span.scope for span in self.spans]

    @property
    def use_device(self) -> str | None:
        return None

    @property
    def kineto_result(self) -> None:
        return None

    def kineto_event(self, _event: int) -> None:
        return None

    counted = ()

    def counters(self, _event: int, /) -> dict[str, int]:
        return {}

    def cpp_stack(self, _event: int, /) -> tuple[()]:
        return ()

    @property
    def threads(self) -> list[ThreadInfo]:
        count = max((span.thread + 1 for span in self.spans), default=0)
        return [ThreadInfo(index=number, os_tid=100 + number, name="python") for number in range(count)]

    @property
    def stats(self) -> RecordingStats:
        return RecordingStats(
            events=len(self.spans),
            dropped=self.dropped,
            truncated=self.truncated,
            threads=len(self.threads),
            names=len({span.name for span in self.spans}),
            spilled_bytes=0,
            unmatched_ends=0,
            names_overflowed=self.names_overflowed,
            crash_recovery=False,
            device_dropped=self.device_dropped,
            device_partial=self.device_partial,
        )

    def name(self, event: int) -> str:
        return self.spans[event].name

    def row_name(self, event: int) -> str:
        return summed_name(self.name(event))

    def overload_name(self, event: int) -> str:
        del event
        return ""

    def keywords(self, _event: int) -> dict[str, Any]:
        return {}

    def inputs(self, event: int) -> Inputs | None:
        shapes = self.spans[event].shapes
        if shapes is None:
            return None
        return Inputs(
            shapes=shapes, strides=shapes, dtypes=["float"] * len(shapes), concrete=[""] * len(shapes)
        )

    def memory(self, event: int) -> MemoryChange | None:
        del event
        return None

    @property
    def cpu_memory(self) -> list[int]:
        return [0] * len(self.spans)

    self_cpu_memory = device_memory = self_device_memory = flops = cpu_memory

    def parted_groups(self, *, by_inputs: bool, by_overload: bool, stack_depth: int) -> None:
        del by_inputs, by_overload, stack_depth

    def groups(self, *, by_inputs: bool = False) -> list[OpGroup]:
        self.group_calls += 1
        groups: dict[tuple[object, ...], OpGroup] = {}
        for i in sorted(range(len(self)), key=self.start_ns.__getitem__):
            span = self.spans[i]
            name = "ProfilerStep*" if span.name.startswith("ProfilerStep#") else span.name
            key = (
                name,
                span.scope == USER_SCOPE,
                span.is_background,
                str(span.shapes) if by_inputs else "",
            )
            sofar = groups.get(key) or self._empty_group(i, name)
            groups[key] = replace(
                sofar,
                count=sofar.count + 1,
                total_ns=sofar.total_ns + max(self.duration_ns[i], 0),
                self_ns=sofar.self_ns + self.self_ns[i],
            )
        return list(groups.values())

    def _empty_group(self, event: int, name: str) -> OpGroup:
        span = self.spans[event]
        return OpGroup(
            name=name,
            kind=EventKind(self.kind[event]),
            scope=span.scope,
            is_user_annotation=span.scope == USER_SCOPE,
            background=span.is_background,
            is_async=span.is_async,
            count=0,
            total_ns=0,
            self_ns=0,
            min_ns=0,
            max_ns=0,
            first_event=event,
            sums={},
            steps={},
        )


HandMadeRecording: Any = _HandMade  # for mypy, it passes as a recording


@dataclass(frozen=True, slots=True)
class Shape:
    """A tree of events before it is laid out in time."""

    span: Span
    before: int
    after: int
    children: Sequence[Shape]


def laid_out(shapes: Sequence[Shape], start: int, *, thread: int) -> tuple[list[Span], int]:
    """Spans for consecutive trees from a start on, in units; and the end of the last one."""
    spans: list[Span] = []
    now = start
    for shape in shapes:
        inside, end = laid_out(shape.children, now + shape.before, thread=thread)
        end += shape.after + 1
        start_ns, end_ns = ((time * MOST_THREADS + thread) * UNIT_NS for time in (now, end))
        spans.append(replace(shape.span, start_ns=start_ns, end_ns=end_ns, thread=thread))
        spans += inside
        now = end
    return spans, now


def spans_like(names: st.SearchStrategy[str], *, odd: bool) -> st.SearchStrategy[Span]:
    """Single events; with ``odd``, some that torch skips."""
    flags = st.integers(0, 19) if odd else st.just(19)
    return st.builds(
        lambda name, scope, flag, shapes: Span(
            name=name,
            start_ns=0,
            end_ns=0,
            scope=USER_SCOPE if name.startswith("ProfilerStep") else scope,
            is_async=flag == 0,
            shapes=shapes,
        ),
        names,
        st.sampled_from([0, 0, 0, 1, USER_SCOPE]),
        flags,
        st.sampled_from([None, [], [[2, 3]], [[2, 3], []], [[[4], [5]], [7, 7, 7]]]),
    )


def forests(names: Sequence[str], *, odd: bool = True) -> st.SearchStrategy[list[Span]]:
    """Nested events on one to three threads, at times that are whole eighths of a microsecond.

    Args:
        names: The ops' names.
        odd: Some events are async.
    """
    gap = st.integers(0, 20_000) | st.integers(0, 8)
    span = spans_like(st.sampled_from(names), odd=odd)
    leaf = st.builds(Shape, span, gap, gap, st.just(()))
    tree = st.recursive(
        leaf, lambda inner: st.builds(Shape, span, gap, gap, st.lists(inner, max_size=3)), max_leaves=12
    )

    def together(threads: list[tuple[int, list[Shape]]]) -> list[Span]:
        spans: list[Span] = []
        for thread, (start, shapes) in enumerate(threads):
            spans += laid_out(shapes, start, thread=thread)[0]
        return spans

    return st.lists(st.tuples(gap, st.lists(tree, max_size=3)), min_size=1, max_size=MOST_THREADS).map(
        together
    )
