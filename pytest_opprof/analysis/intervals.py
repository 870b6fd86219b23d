"""Stretches of time, and how much of an event lies in them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass
class Interval:
    """A stretch of time, as ``torch.profiler._utils.Interval``.

    Attributes:
        start: Nanoseconds.
        end: Nanoseconds; a stretch that ends before it starts is empty.
        queue_depth: Kernels launched and not started, where it is about a launch or a kernel.
    """

    start: int
    end: int
    queue_depth: int = 0


class Cover:
    """A set of stretches of time that is asked again and again how much of an event lies in it.

    With the stretches' starts and ends sorted, the time covered before any moment is a difference of two
    sums, so that each question costs a search and not a walk.

    Args:
        intervals: Where some overlap, what they share counts once for each.
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
    """The same time as stretches that do not touch, earliest first."""
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
    """What of the time from `start` to `end` is in no stretch, earliest first."""
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


def torch_overlap(start: int, end: int, intervals: Sequence[Interval]) -> tuple[int, bool]:
    """What torch makes of the overlap of an event with some stretches.

    It means to shorten a stretch by what an earlier one covers. But it goes on from the wrong one after it
    has shortened one, leaves out the stretch that follows a covered one, and shortens what it was given.

    The source is ``EventKey.intervals_overlap`` in torch/profiler/_utils.py of torch 2.13.

    Returns:
        Nanoseconds, and whether the stretches are now others than before.
    """
    ordered = sorted(intervals, key=lambda interval: interval.start)
    total = _shared(start, end, ordered[0]) if ordered else 0
    has_changed = False
    before, at = 0, 1
    while at < len(ordered):
        last, this = ordered[before], ordered[at]
        at += 1
        if last.end > this.start:
            if last.end > this.end:
                at += 1
                continue
            this.start = last.end
            has_changed = True
            before = at
        total += _shared(start, end, this)
    return total, has_changed


def torch_overlaps(events: Iterable[tuple[int, int]], intervals: Sequence[Interval]) -> list[int]:
    """`torch_overlap` of many events with the same stretches, one event after the other.

    As soon as an event leaves the stretches as they were, each later one sees the same of them, and can be
    answered by a search. A start only ever moves on to an end, so that comes after a few events.
    """
    overlaps: list[int] = []
    settled: Cover | None = None
    for start, end in events:
        if settled is not None:
            overlaps.append(settled.overlap(start, end))
            continue
        total, has_changed = torch_overlap(start, end, intervals)
        overlaps.append(total)
        if not has_changed:
            settled = Cover(_seen_by_torch(intervals))
    return overlaps


def _shared(start: int, end: int, interval: Interval) -> int:
    return max(0, min(end, interval.end) - max(start, interval.start))


def _seen_by_torch(intervals: Sequence[Interval]) -> list[Interval]:
    """The stretches that `torch_overlap` adds up, of those that it no longer changes."""
    ordered = sorted(intervals, key=lambda interval: interval.start)
    seen = ordered[:1]
    at = 1
    # Nothing is shortened any more, so that it never goes on from another stretch than the first.
    while at < len(ordered):
        covered = ordered[0].end > ordered[at].start
        if not covered:
            seen.append(ordered[at])
        at += 2 if covered else 1
    return seen
