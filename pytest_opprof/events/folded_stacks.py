"""Stacks with their times, one on a line, for flamegraph.pl and similar tools."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from pytest_opprof.capture.cpp_stacks import CppFrame, down_to_python
from pytest_opprof.capture.sources import StackKind
from pytest_opprof.errors import UsageError
from pytest_opprof.events.columns import Compat
from pytest_opprof.events.function_event import FunctionEvent
from pytest_opprof.events.names import filter_stack_entry
from pytest_opprof.events.recorded_event import RecordedEvent
from pytest_opprof.events.stacks import StackTree
from pytest_opprof.units import NS_IN_US

METRICS: Final = (
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
)
# A space separates a stack from its time, and semicolons separate its entries.
_CLEARED: Final = str.maketrans(" ;\t\n", "____")


def folded_lines(
    events: Iterable[FunctionEvent], metric: str, *, compat: Compat | None, stacks: StackKind = "python"
) -> Iterator[str]:
    """The lines of a file of stacks, outermost call first: ``main;forward 1500``.

    Equal stacks share a line, with the sum of their nanoseconds. Events without a stack are left out; a
    Python call is part of its own stack. ``compat="torch"`` writes as torch does: a line for each event, in
    whole microseconds, without those below 1, and with Python calls charged to their callers.
    ``stacks="all"`` puts the C++ functions inside the innermost Python call after the Python calls.
    """
    if stacks not in _NODES or (compat == "torch" and stacks != "python"):
        raise UsageError(f"stacks is {stacks!r}; use {', '.join(_NODES)} (compat='torch': only python)")
    if metric not in METRICS:
        raise ValueError(f"metric should be one of: {list(METRICS)}")
    attribute = METRICS[0] if metric == METRICS[0] else "self_device_time_total"
    if compat == "torch":
        for event in events:
            time_us = int(getattr(event, attribute))
            if event.stack and time_us > 0:
                yield f"{';'.join(map(_cleared, reversed(event.stack)))} {time_us}\n"
        return
    shown = _Shown()
    sums: dict[int, int] = {}
    for event in events:
        time_ns = round(getattr(event, attribute) * NS_IN_US)
        node = _NODES[stacks](shown, event) if time_ns > 0 else -1
        if node >= 0:
            sums[node] = sums.get(node, 0) + time_ns
    for text, time_ns in zip(shown.texts(sums), sums.values(), strict=True):
        yield f"{text} {time_ns}\n"


class _Shown:
    """The stacks to write, as one tree. Each recorded stack is read once, not once per event."""

    def __init__(self) -> None:
        self.tree = StackTree()
        self._known: defaultdict[StackTree, dict[int, int]] = defaultdict(lambda: {-1: -1})

    def of_python(self, event: FunctionEvent) -> int:
        """The node of an event's Python calls."""
        if isinstance(event, RecordedEvent) and event.has_recorded_stack:
            node = self._without_hidden(*event.forest.stacks.tree_and_node(event.index))
        else:
            node = self.tree.within(-1, reversed(event.stack or ()))
        return self.tree.inside(node, event.name or "") if event.is_python_function else node

    def of_cpp(self, event: FunctionEvent) -> int:
        """The node of the C++ functions around an event."""
        return self._cpp(-1, event.cpp_frames)

    def of_both(self, event: FunctionEvent) -> int:
        """The node of an event's Python calls and of the C++ functions inside the innermost one."""
        return self._cpp(self.of_python(event), down_to_python(event.cpp_frames))

    def _cpp(self, outer: int, frames: Sequence[CppFrame]) -> int:
        return self.tree.within(outer, (frame.name for frame in reversed(frames)))

    def _without_hidden(self, recorded: StackTree, node: int) -> int:
        known, waiting = self._known[recorded], []
        while node not in known:
            waiting.append(node)
            node = recorded.outer[node]
        shown = known[node]
        for node in reversed(waiting):
            entry = recorded.entry[node]
            shown = known[node] = self.tree.inside(shown, entry) if filter_stack_entry(entry) else shown
        return shown

    def texts(self, nodes: Iterable[int]) -> Iterator[str]:
        """Each stack as text. The entries that it shares with the stack before are not written again."""
        text, ends = "", {-1: 0}  # where each entry of the last stack ends in its text
        for node in nodes:
            entries, at = [], node
            while at not in ends:
                entries.append(at)
                at = self.tree.outer[at]
            while next(reversed(ends)) != at:
                ends.popitem()
            end = ends[at]
            pieces = [text[:end]]
            for at in reversed(entries):
                piece = f"{';' if len(ends) > 1 else ''}{_cleared(self.tree.entry[at])}"
                pieces.append(piece)
                end += len(piece)
                ends[at] = end
            text = "".join(pieces)
            yield text


_NODES: Final[Mapping[StackKind, Callable[[_Shown, FunctionEvent], int]]] = {
    "python": _Shown.of_python,
    "cpp": _Shown.of_cpp,
    "all": _Shown.of_both,
}


@functools.lru_cache(maxsize=1 << 14)
def _cleared(entry: str) -> str:
    return entry.translate(_CLEARED)
