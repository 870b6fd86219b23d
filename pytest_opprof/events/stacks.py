"""The stack of each event, derived from the Python calls around it at no cost while recording."""

from __future__ import annotations

import functools
import re
import sys
from array import array
from collections.abc import Iterable, Iterator
from typing import Final

from pytest_opprof.capture.window import OpenCall
from pytest_opprof.events.kineto_recording import RecordingView
from pytest_opprof.kinds import BACKWARD_SCOPE, PYTHON_CALLS, EventKind

# A row that was not looked up yet; -1 means none.
_UNKNOWN: Final = -2
_FRAME: Final = re.compile(r"(?P<path>.*)\((?P<line>\d+)\): (?P<function>.*)", re.DOTALL)


class StackTree:
    """Stacks that share their outer entries. A node is a stack's innermost entry; -1 is the empty stack."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[int, str], int] = {}
        self.outer: list[int] = []  # by node, the stack without its innermost entry
        self.entry: list[str] = []  # by node, the innermost entry

    def inside(self, outer: int, entry: str) -> int:
        """The stack with one more, innermost entry."""
        node = self._nodes.setdefault((outer, entry), len(self.outer))
        if node == len(self.outer):
            self.outer.append(outer)
            self.entry.append(entry)
        return node

    def within(self, outer: int, entries: Iterable[str]) -> int:
        """The stack with these entries added, outermost first."""
        for entry in entries:
            outer = self.inside(outer, entry)
        return outer

    def entries(self, node: int) -> Iterator[str]:
        """All entries of a stack, innermost first."""
        while node >= 0:
            yield self.entry[node]
            node = self.outer[node]


class Stacks:
    """The stacks of one recording's events.

    An entry is ``file(line): function``, as in torch, innermost first. Torch gives the function's first line;
    here it is the running line, if known. What is around a row is looked up once and reused by the rows
    inside it, because a walk outwards from each row is quadratic in depth.
    """

    def __init__(self, recording: RecordingView) -> None:
        self._recording = recording
        self._tree = StackTree()
        self._of_calls: dict[int, int] = {}
        # By thread: the last answer of `_open_at`, and the interval in which it holds.
        self._open: dict[int, tuple[int, int, int, OpenCall | None]] = {}

    @functools.cached_property
    def were_recorded(self) -> bool:
        """Whether any stack was recorded."""
        kinds = bytes(self._recording.kind)
        return bool(self._recording.open_calls) or any(kind in kinds for kind in PYTHON_CALLS)

    def stack(self, event: int) -> list[str]:
        """The calls an event was made from; inside a backward op, those of its forward op.

        A backward op without a known forward op (``AccumulateGrad``) has the calls of the backward pass.
        """
        tree, node = self.tree_and_node(event)
        return list(tree.entries(node))

    def tree_and_node(self, event: int) -> tuple[StackTree, int]:
        """As `stack`, but a node of the shared tree."""
        if not self.were_recorded:
            return self._tree, -1
        backward = self._backward_around(event) if self._has_backward else -1
        if backward >= 0:
            recording = self._recording
            key = recording.sequence_nr[backward], recording.forward_thread[backward]
            event = self._forwards.get(key, event)
        return self._tree, self._calls_around(event)

    def torch_stack(self, event: int) -> list[str]:
        """As `stack`, but as torch records it: functions' first lines, and a backward op's own calls.

        Torch assigns the stacks of forward ops later, by its own rules.
        """
        found: list[str] = []
        row = event
        while self.were_recorded and row >= 0:
            _, outer = self._line_and_call(row)
            if outer < 0:
                return [*found, *self._tree.entries(self._open_calls(row, 0))]
            found.append(self._recording.name(outer))
            row = outer
        return found

    def _calls_around(self, event: int) -> int:
        """The stack of the calls around an event, cached by call: its events differ only in the line."""
        recording = self._recording
        waiting: list[tuple[int, int]] = []  # calls outwards, each with the line it was at
        row = event
        while True:
            line, call = self._line_and_call(row)
            if call < 0:
                node = self._open_calls(row, line)
                break
            waiting.append((call, line))
            row = call
            known = self._of_calls.get(row)
            if known is not None:
                node = known
                break
        for call, line in reversed(waiting):
            self._of_calls[call] = node
            node = self._tree.inside(node, at_line(recording.name(call), line))
        return node

    def _line_and_call(self, row: int) -> tuple[int, int]:
        """The line and the call around an event. An op's line holds for all that runs in the op."""
        parents, kinds, own = self._recording.parent, self._recording.kind, self._recording.line
        lines, calls = self._lines_and_calls
        waiting = []
        at = row
        while at >= 0 and calls[at] == _UNKNOWN:
            waiting.append(at)
            at = -1 if parents[at] < 0 or kinds[parents[at]] in PYTHON_CALLS else parents[at]
        line, call = (0, parents[waiting[-1]]) if at < 0 else (lines[at], calls[at])
        for at in reversed(waiting):
            line = lines[at] = own[at] or line
            calls[at] = call
        return line, call

    @functools.cached_property
    def _lines_and_calls(self) -> tuple[array[int], array[int]]:
        """By row, what `_line_and_call` found."""
        count = len(self._recording)
        return array("I", [0]) * count, array("i", [_UNKNOWN]) * count

    def _open_calls(self, event: int, line: int) -> int:
        """The stack of the calls from before the window that are still open when the event begins."""
        outer, innermost = self._open_at(self._recording.thread[event], self._recording.start_ns[event])
        if innermost is None:
            return -1
        return self._tree.inside(outer, at_line(innermost.name, line or innermost.line))

    def _open_at(self, thread: int, at_ns: int) -> tuple[int, OpenCall | None]:
        """Of the calls from before the window that are open then, the innermost and the stack around it."""
        from_ns, until_ns, outer, innermost = self._open.get(thread, (0, -1, -1, None))
        if from_ns <= at_ns < until_ns:
            return outer, innermost
        outer, innermost, until_ns = -1, None, sys.maxsize
        for call in self._recording.open_calls:
            if call.thread != thread or 0 <= call.end_ns <= at_ns:
                continue
            if innermost is not None:
                outer = self._tree.inside(outer, at_line(innermost.name, innermost.line))
            innermost = call
            until_ns = min(until_ns, call.end_ns) if call.end_ns >= 0 else until_ns
        self._open[thread] = (at_ns, until_ns, outer, innermost)
        return outer, innermost

    @functools.cached_property
    def _has_backward(self) -> bool:
        return BACKWARD_SCOPE in bytes(self._recording.scope)

    def _backward_around(self, event: int) -> int:
        recording, known = self._recording, self._backwards
        passed = []
        row = event
        while row >= 0 and known[row] == _UNKNOWN:
            if recording.scope[row] == BACKWARD_SCOPE and recording.kind[row] == EventKind.TORCH:
                known[row] = row
            else:
                passed.append(row)
                row = recording.parent[row]
        backward = -1 if row < 0 else known[row]
        for row in passed:
            known[row] = backward
        return backward

    @functools.cached_property
    def _backwards(self) -> array[int]:
        """By row, what `_backward_around` found."""
        return array("i", [_UNKNOWN]) * len(self._recording)

    @functools.cached_property
    def _forwards(self) -> dict[tuple[int, int], int]:
        """The first op of each sequence number and thread: the outermost of those that share it."""
        recording = self._recording
        first: dict[tuple[int, int], int] = {}
        for row, number in enumerate(recording.sequence_nr):
            if number >= 0 and recording.forward_thread[row] == 0:
                thread = recording.threads[recording.thread[row]].torch_thread
                first.setdefault((number, thread), row)
        return first


@functools.lru_cache(maxsize=1 << 14)
def at_line(entry: str, line: int) -> str:
    """An entry with another line; 0 keeps the function's first line."""
    frame = _FRAME.fullmatch(entry) if line else None
    return f"{frame['path']}({line}): {frame['function']}" if frame else entry


def frame_of(entry: str) -> tuple[str, int, str] | None:
    """The file, line and function of an entry; None for a C function or a torch module."""
    frame = _FRAME.fullmatch(entry)
    return (frame["path"], int(frame["line"]), frame["function"]) if frame else None
