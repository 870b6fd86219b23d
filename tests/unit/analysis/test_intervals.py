"""Stretches of time: unions, gaps and overlaps, against counting every nanosecond."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from pytest_opprof.analysis.kernel_queue import Cover, Interval, gaps, union

moments = st.integers(0, 40)
stretches = st.lists(st.builds(Interval, moments, moments), max_size=8)


def covered(intervals: list[Interval]) -> set[int]:
    return {moment for one in intervals for moment in range(one.start, one.end)}


@given(stretches)
def test_union_covers_the_same_time_once(intervals: list[Interval]) -> None:
    merged = union(intervals)
    assert sum(one.end - one.start for one in merged) == len(covered(intervals))
    assert covered(merged) == covered(intervals)
    assert all(first.end < second.start for first, second in itertools.pairwise(merged))


@given(stretches)
def test_union_does_not_change_its_input(intervals: list[Interval]) -> None:
    before = [(one.start, one.end) for one in intervals]
    union(intervals)
    assert [(one.start, one.end) for one in intervals] == before


@given(stretches, moments, moments)
def test_gaps_complement_the_union(intervals: list[Interval], start: int, end: int) -> None:
    assert covered(gaps(intervals, start, end)) == set(range(start, end)) - covered(intervals)


@given(stretches, moments, moments)
def test_cover_counts_each_stretch(intervals: list[Interval], start: int, end: int) -> None:
    wanted = sum(len(set(range(start, end)) & covered([one])) for one in intervals)
    assert Cover(intervals).overlap(start, end) == wanted
