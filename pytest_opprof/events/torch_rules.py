"""Which events torch.profiler counts, and how much of each: the rules behind ``compat="torch"``.

Torch hides some helper ops, and hands their children to the op around them. It sets aside an event that ended
on another thread, or never. Then an op whose only child has its own name swallows that child: the child is no
longer counted, its time becomes the parent's own, and its children become the parent's, which may make the
rule hold again one level down.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pytest_opprof.capture.recording import FLAG_ASYNC, FLAG_UNFINISHED
from pytest_opprof.events.function_event import summed_name

if TYPE_CHECKING:
    from pytest_opprof.events.forest import EventForest

HIDDEN_NAMES: Final = frozenset(
    {
        "[memory]",
        "[OutOfMemory]",
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
    }
)


def torch_sums(forest: EventForest) -> Iterator[tuple[int, int]]:
    """The events that torch counts, in the order in which they began.

    Yields:
        An index into the columns, and the self time that torch gives that event, nanoseconds.
    """
    recording = forest.recording
    count = len(recording)
    names = [summed_name(recording.name(index)) for index in range(count)]
    hidden = bytearray(name in HIDDEN_NAMES for name in names)
    apart = bytearray(flags & (FLAG_ASYNC | FLAG_UNFINISHED) != 0 for flags in recording.flags)

    parents = _parents(recording.parent, hidden, apart)
    swallowed = _swallow(names, parents, hidden)
    self_ns = array("q", recording.duration_ns)
    for index in range(count):
        if apart[index]:
            self_ns[index] = 0
        elif not hidden[index] and not swallowed[index] and parents[index] >= 0:
            self_ns[parents[index]] -= recording.duration_ns[index]

    for position in range(len(forest)):
        index = forest.index_at(position)
        if not hidden[index] and not swallowed[index]:
            yield index, self_ns[index]


def _parents(recorded: Sequence[int], hidden: bytearray, apart: bytearray) -> array[int]:
    """For each event the nearest one around it that torch has in its tree, -1 for none."""
    parents = array("q", [-1]) * len(recorded)
    # In preorder a parent comes before its children: what is around the parent is known by then.
    for index, parent in enumerate(recorded):
        if parent >= 0:
            parents[index] = parents[parent] if hidden[parent] or apart[parent] else parent
    for index, set_aside in enumerate(apart):
        if set_aside:
            parents[index] = -1
    return parents


def _swallow(names: Sequence[str], parents: array[int], hidden: bytearray) -> bytearray:
    """Mark what a parent of the same name swallows, and move its children up in ``parents``."""
    children = array("q", [0]) * len(names)
    for index, parent in enumerate(parents):
        if parent >= 0 and not hidden[index]:
            children[parent] += 1
    swallowed = bytearray(len(names))
    for index, name in enumerate(names):
        parent = parents[index]
        if parent < 0 or hidden[index]:
            continue
        if swallowed[parent]:
            parent = parents[index] = parents[parent]
        if children[parent] == 1 and names[parent] == name:
            swallowed[index] = True
            children[parent] = children[index]
    return swallowed
