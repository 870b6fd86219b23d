"""The queue between a host and its devices: which call launched which kernels, and how many were waiting.

A kernel belongs to the runtime or driver call with its correlation number; a launch of a graph has many
kernels. Without such numbers, an op's kernels belong to its launches in order, the rest to the last launch.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, Literal

from pytest_opprof.analysis.event_trees import name_of
from pytest_opprof.analysis.intervals import Interval, gaps
from pytest_opprof.events.device import DeviceType
from pytest_opprof.events.kineto_event import device_of, told

_LAUNCH: Final = re.compile(r"(__)?(cuda|cu|hip|ur|ze)\w*?(Launch\w*Kernel|GraphLaunch|KernelLaunch)")
_KERNELS: Final = frozenset({"kernel", "concurrent_kernel"})
_CALLS: Final = ("_runtime", "_driver")
_COPIES: Final = ("memcpy", "memset")  # how CUPTI's and ROCm's names of copies and fills begin

# What ties a launch to its kernels.
_Tie = tuple[Literal["call", "op"], int]


@dataclass(frozen=True, slots=True)
class Launch:
    """A call, and the kernels that it launched.

    Attributes:
        kernels: In start order; empty if none was recorded.
    """

    event: Any
    kernels: tuple[Any, ...]


class KernelQueue:
    """The launches and kernels of a profile.

    Attributes:
        launches: In start order.
        kernels: In start order.
    """

    def __init__(self, kineto_events: Iterable[Any]) -> None:
        events = sorted(kineto_events, key=lambda event: int(event.start_ns()))
        self.kernels = [event for event in events if is_kernel(event)]
        self.launches = _launches([event for event in events if is_launch(event)], self.kernels)
        tied = [kernel for launch in self.launches for kernel in launch.kernels]
        self._launch_starts = [launch.event.start_ns() for launch in self.launches]
        self._launched = [0, *accumulate(len(launch.kernels) for launch in self.launches)]
        # A kernel launched before the window was never in the queue that the window saw.
        self._kernel_starts = sorted(kernel.start_ns() for kernel in tied)

    def depth(self, moment: int) -> int:
        """The number of kernels that are launched but not started right after a moment."""
        launched = self._launched[bisect_right(self._launch_starts, moment)]
        return max(0, launched - bisect_right(self._kernel_starts, moment))

    def points(self) -> list[tuple[Any, Interval]]:
        """Each launch and kernel in start order, with its time and the depth at its start."""
        events = sorted(
            [launch.event for launch in self.launches] + self.kernels, key=lambda event: int(event.start_ns())
        )
        return [
            (event, Interval(event.start_ns(), end_of(event), self.depth(event.start_ns())))
            for event in events
        ]

    def idle(self, start: int, end: int) -> list[Interval]:
        """The intervals from `start` to `end` without a waiting or running kernel; empty without kernels."""
        busy = [Interval(kernel.start_ns(), end_of(kernel)) for kernel in self.kernels]
        busy += [
            Interval(launch.event.start_ns(), max(end_of(kernel) for kernel in launch.kernels))
            for launch in self.launches
            if launch.kernels
        ]
        return gaps(busy, start, end) if busy else []


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


def _launches(calls: Sequence[Any], kernels: Iterable[Any]) -> list[Launch]:
    waiting: defaultdict[_Tie, list[Any]] = defaultdict(list)
    for kernel in kernels:
        waiting[_tie(kernel)].append(kernel)
    alike: defaultdict[_Tie, list[Any]] = defaultdict(list)
    for call in calls:
        alike[_tie(call)].append(call)
    launched = {
        id(call): mine for tie, some in alike.items() for call, mine in _shared_out(tie, some, waiting)
    }
    return [Launch(call, launched[id(call)]) for call in calls if id(call) in launched]


def _shared_out(
    tie: _Tie, calls: Sequence[Any], waiting: Mapping[_Tie, Sequence[Any]]
) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    kernels = waiting.get(tie, ())
    if tie[0] == "call":
        # A runtime call and the driver call inside it have the same number, and are one launch.
        yield calls[0], tuple(kernels)
        return
    last = len(calls) - 1
    for place, call in enumerate(calls):
        yield call, tuple(kernels[place : place + 1] if place < last else kernels[last:])
