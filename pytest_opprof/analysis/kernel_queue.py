"""The queue between a host and its devices: which call launched which kernels, and how many were waiting.

A kernel belongs to the runtime or driver call with its correlation number; a launch of a graph has many
kernels. Without such numbers, an op's kernels belong to its launches in order, the rest to the last launch.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, Literal

from pytest_opprof.events.device import DeviceType
from pytest_opprof.events.kineto_event import device_of, told

_LAUNCH: Final = re.compile(r"(__)?(cuda|cu|hip|ur|ze)\w*?(Launch\w*Kernel|GraphLaunch|KernelLaunch)")
_KERNELS: Final = frozenset({"kernel", "concurrent_kernel"})
_CALLS: Final = ("_runtime", "_driver")
_COPIES: Final = ("memcpy", "memset")  # how CUPTI's and ROCm's names of copies and fills begin

# What ties a launch to its kernels.
_Tie = tuple[Literal["call", "op"], int]


@dataclass
class Interval:
    """An interval of time, as ``torch.profiler._utils.Interval``."""

    start: int  # nanoseconds
    end: int  # nanoseconds; an interval that ends before it starts is empty
    queue_depth: int = 0  # kernels launched but not started, if the interval is that of a launch or a kernel


class Cover:
    """A set of intervals, for many queries of how much of an event lies in it.

    With the starts and ends sorted, the time covered before a moment is a difference of two sums, so a query
    is a binary search.

    Args:
        intervals: Where some overlap, the overlap counts once for each.
    """

    def __init__(self, intervals: Iterable[Interval]) -> None:
        stretches = [(one.start, one.end) for one in intervals if one.start < one.end]
        self._starts = sorted(start for start, _ in stretches)
        self._ends = sorted(end for _, end in stretches)
        self._start_sums = [0, *accumulate(self._starts)]
        self._end_sums = [0, *accumulate(self._ends)]

    def overlap(self, start: int, end: int) -> int:
        """Nanoseconds of the time from `start` to `end` that are covered."""
        return self._before(end) - self._before(start) if start < end else 0

    def _before(self, moment: int) -> int:
        begun = bisect_right(self._starts, moment)
        ended = bisect_right(self._ends, moment)
        # What began before the moment covers moment - start; what also ended there, only end - start.
        return (begun * moment - self._start_sums[begun]) - (ended * moment - self._end_sums[ended])


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same time as intervals that do not touch, earliest first."""
    merged: list[Interval] = []
    for one in sorted(intervals, key=lambda interval: interval.start):
        if one.start >= one.end:
            continue
        if merged and one.start <= merged[-1].end:
            merged[-1].end = max(merged[-1].end, one.end)
        else:
            merged.append(Interval(one.start, one.end))
    return merged


def gaps(busy: Iterable[Interval], start: int, end: int) -> list[Interval]:
    """The intervals from `start` to `end` in which nothing was busy, earliest first."""
    free: list[Interval] = []
    for one in union(busy):
        if one.start >= end:
            break
        if start < one.start:
            free.append(Interval(start, one.start))
        start = max(start, one.end)
    if start < end:
        free.append(Interval(start, end))
    return free


class KernelQueue:
    """The launches and kernels of a profile."""

    def __init__(self, kineto_events: Iterable[Any]) -> None:
        events = sorted(kineto_events, key=lambda event: int(event.start_ns()))
        self.kernels = [event for event in events if is_kernel(event)]  # in start order
        # in start order, each call with the kernels that it launched, in start order
        self.launches = _launches([event for event in events if is_launch(event)], self.kernels)
        self._launch_starts = [call.start_ns() for call, _ in self.launches]
        self._launched = [0, *accumulate(len(kernels) for _, kernels in self.launches)]
        # A kernel launched before the window was never in the queue that the window saw.
        self._kernel_starts = sorted(kernel.start_ns() for _, kernels in self.launches for kernel in kernels)

    def depth(self, moment: int) -> int:
        """The number of kernels that are launched but not started right after a moment."""
        launched = self._launched[bisect_right(self._launch_starts, moment)]
        return max(0, launched - bisect_right(self._kernel_starts, moment))

    def points(self) -> list[tuple[Any, Interval]]:
        """Each launch and kernel in start order, with its time and the depth at its start."""
        calls = [call for call, _ in self.launches]
        return [
            (event, Interval(event.start_ns(), end_of(event), self.depth(event.start_ns())))
            for event in sorted(calls + self.kernels, key=lambda event: int(event.start_ns()))
        ]

    def idle(self, start: int, end: int) -> list[Interval]:
        """The intervals from `start` to `end` without a waiting or running kernel; empty without kernels."""
        busy = [Interval(kernel.start_ns(), end_of(kernel)) for kernel in self.kernels]
        busy += [
            Interval(call.start_ns(), max(map(end_of, kernels))) for call, kernels in self.launches if kernels
        ]
        return gaps(busy, start, end) if busy else []


def name_of(event: Any) -> str:
    """An event's name, which is a string in a tree but a method of a Kineto event."""
    name = event.name
    return str(name() if callable(name) else name)


def end_of(event: Any) -> int:
    """When a Kineto event ended, nanoseconds."""
    end: int = event.start_ns() + event.duration_ns()
    return end


def is_kernel(event: Any) -> bool:
    """Whether a Kineto event is a kernel, not a copy, fill, wait or annotation."""
    if device_of(event) == DeviceType.CPU or told(event, "is_user_annotation"):
        return False
    activity = told(event, "activity_type")
    return activity in _KERNELS if activity else not name_of(event).lower().startswith(_COPIES)


def is_launch(event: Any) -> bool:
    """Whether a Kineto event is a call that launches kernels: of CUDA, ROCm, SYCL or Level Zero."""
    if device_of(event) != DeviceType.CPU:
        return False
    activity = told(event, "activity_type")
    return (not activity or activity.endswith(_CALLS)) and bool(_LAUNCH.match(name_of(event)))


def _tie(event: Any) -> _Tie:
    number = told(event, "correlation_id")
    return ("call", number) if number else ("op", told(event, "linked_correlation_id"))


def _by_tie(events: Iterable[Any]) -> Mapping[_Tie, Sequence[Any]]:
    found: defaultdict[_Tie, list[Any]] = defaultdict(list)
    for event in events:
        found[_tie(event)].append(event)
    return found


def _launches(calls: Sequence[Any], kernels: Iterable[Any]) -> list[tuple[Any, Sequence[Any]]]:
    waiting = _by_tie(kernels)
    launched: dict[int, Sequence[Any]] = {}
    for tie, alike in _by_tie(calls).items():
        tied = waiting.get(tie, ())
        if tie[0] == "call":
            # A runtime call and the driver call inside it have the same number, and are one launch.
            launched[id(alike[0])] = tied
        else:
            launched.update((id(call), tied[at : at + 1]) for at, call in enumerate(alike))
            launched[id(alike[-1])] = tied[len(alike) - 1 :]
    return [(call, launched[id(call)]) for call in calls if id(call) in launched]
