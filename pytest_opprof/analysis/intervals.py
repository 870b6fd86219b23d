"""Intervals of time, and how much of an event lies in them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate


@dataclass
class Interval:
    """An interval of time, as ``torch.profiler._utils.Interval``.

    Attributes:
        start: Nanoseconds.
        end: Nanoseconds; an interval that ends before it starts is empty.
        queue_depth: Kernels launched but not started, if the interval is that of a launch or a kernel.
    """

    start: int
    end: int
    queue_depth: int = 0


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
