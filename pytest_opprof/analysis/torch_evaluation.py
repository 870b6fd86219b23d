"""What torch's ``BasicEvaluation`` makes of a profile: the rules behind its ``compat="torch"``.

Torch takes the name of an event of Kineto's for a text, where it is a method: of what Kineto tells, nothing
is a launch, and copies are kernels. It looks for a kernel of the op, not of the launch; it takes the
kernels for started in the order in which they were launched; and it leaves out every other phase in which a
queue ran empty.

The source is ``BasicEvaluation`` in torch/profiler/_utils.py of torch 2.13. What it does in squares or
cubes of the number of events is done here by searches.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pytest_opprof.analysis.intervals import Interval
from pytest_opprof.analysis.ranking import EMPTY, FULL, SELF_TIME_WEIGHT, argmax, filled_stretches
from pytest_opprof.events.device import DeviceType
from pytest_opprof.events.kineto_event import device_of
from pytest_opprof.units import NS_IN_US

_LAUNCHES: Final = (
    "cudaLaunchKernel",
    "__cudaLaunchKernel",
    "cudaLaunchCooperativeKernel",
)
_NO_KERNELS: Final = ("mem", "cpy", "alloc", "free")


class TorchQueue:
    """The launches and kernels that torch sees.

    Args:
        kineto_events: Events as Kineto tells of them.

    Attributes:
        events: Launches and kernels in the order of their start.
    """

    def __init__(self, kineto_events: Iterable[Any]) -> None:
        given = list(kineto_events)
        self._launches = sorted(
            (one for one in given if _is_launch(one)), key=lambda one: int(one.start_ns())
        )
        self._kernels = sorted((one for one in given if _is_kernel(one)), key=lambda one: int(one.start_ns()))
        self.events = sorted(self._launches + self._kernels, key=lambda one: int(one.start_ns()))

    def depths(self, tree_events: Sequence[Any]) -> tuple[list[Interval], list[int]]:
        """The depth of the queue at each of `events`, and at each event of the tree.

        Args:
            tree_events: In the order of their start.
        """
        kernel_of = self._first_kernels()
        points: list[Interval] = []
        of_tree: list[int] = []
        started, spawned = 0, -1
        for event in sorted([*self._launches, *self._kernels, *tree_events], key=_sort_time):
            is_node = not hasattr(event, "start_ns")
            start = event.start_time_ns if is_node else event.start_ns()
            if not is_node:
                spawned = kernel_of.get(event, spawned)
            while started < len(self._kernels) and self._kernels[started].start_ns() <= start:
                started += 1
            depth = max(spawned - started + 1, 0)
            if is_node:
                of_tree.append(depth)
            else:
                points.append(Interval(start, start + event.duration_ns(), depth))
        return points, of_tree

    def _first_kernels(self) -> Mapping[Any, int]:
        """Each launch's kernel: the first of its op that does not start before the last launch's."""
        places: defaultdict[int, list[int]] = defaultdict(list)
        for index, kernel in enumerate(self._kernels):
            places[kernel.linked_correlation_id()].append(index)
        found: dict[Any, int | None] = {}
        earliest = 0
        for launch in self._launches:
            mine = places.get(launch.linked_correlation_id(), [])
            place = bisect_left(mine, earliest)
            # Of launches that are equal the last one counts for all, found or not.
            found[launch] = mine[place] if place < len(mine) else None
            earliest = mine[place] if place < len(mine) else earliest
        return {launch: index for launch, index in found.items() if index is not None}


def idle_times(points: Sequence[Interval], tree_events: Sequence[Any]) -> list[Interval]:
    """Before the first point, after the last, and from one with an empty queue to one with a filled one.

    Args:
        points: Launches and kernels in the order of their start.
        tree_events: In the order of their start.
    """
    idle: list[Interval] = []
    if points and tree_events:
        idle.append(Interval(tree_events[0].start_time_ns, points[0].start))
        idle.append(Interval(points[-1].end, tree_events[-1].end_time_ns))
    since: int | None = None
    for point in points:
        if point.queue_depth == 0 and since is None:
            since = point.end
        if point.queue_depth > 0 and since is not None:
            idle.append(Interval(since, point.start))
            since = None
    return idle


def falling_phases(points: Sequence[Interval]) -> list[Interval]:
    """From peaks of a filled queue to an empty one: not always the next, and not from all peaks."""
    backwards = list(reversed(points))
    depths = [point.queue_depth for point in backwards]
    full = [
        (begin, empty, peak)
        for begin, empty in filled_stretches(depths)
        if (peak := argmax(depths, start=begin, end=empty)) is not None and depths[peak] >= FULL
    ]
    phases: list[Interval] = []
    at = stretch = 0
    while at < len(depths):
        if depths[at] <= EMPTY:
            while stretch < len(full) and full[stretch][0] < at:
                stretch += 1
            if stretch == len(full):
                break
            _, empty, peak = full[stretch]
            phases.append(Interval(backwards[peak].start, backwards[at].start))
            at = at if empty is None else empty
        at += 1
    return phases


def scores(idle_fractions: Sequence[float], self_times: Sequence[float]) -> list[float]:
    """As torch works them out, in floats of 32 bits; NaN where all events are alike or there is but one."""
    weight = _single(SELF_TIME_WEIGHT)
    return [
        _single(idle + _single(weight * own))
        for idle, own in zip(_standardized(idle_fractions), _standardized(self_times), strict=True)
    ]


def _standardized(values: Sequence[float]) -> list[float]:
    singles = [_single(value) for value in values]
    mean = squares = 0.0
    # Torch's kernel adds up by Welford's algorithm, in doubles.
    for count, value in enumerate(singles, 1):
        delta = value - mean
        mean += delta / count
        squares += delta * (value - mean)
    deviation = _single(math.sqrt(squares / (len(singles) - 1))) if len(singles) > 1 else math.nan
    middle = _single(mean)
    return [_divided(_single(value - middle), deviation) for value in singles]


def _divided(value: float, by: float) -> float:
    if by:
        return _single(value / by)
    return math.copysign(math.inf, value) if value else math.nan


def _single(value: float) -> float:
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded


def _is_launch(event: Any) -> bool:
    return _text_of(event).startswith(_LAUNCHES)


def _is_kernel(event: Any) -> bool:
    name = _text_of(event).lower()
    return device_of(event) == DeviceType.CUDA and not any(part in name for part in _NO_KERNELS)


def _text_of(event: Any) -> str:
    """What torch takes for an event's name: of a method it is a text about the method."""
    return str(event.name)


def _sort_time(event: Any) -> int:
    if hasattr(event, "start_us"):
        return int(event.start_us()) * NS_IN_US
    return int(event.start_ns() if hasattr(event, "start_ns") else event.start_time_ns)
