"""Stretches of time: unions, gaps and overlaps, against counting every nanosecond."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_opprof.analysis.intervals import Cover, Interval, gaps, torch_overlap, torch_overlaps, union

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
def test_union_leaves_what_it_was_given(intervals: list[Interval]) -> None:
    before = [(one.start, one.end) for one in intervals]
    union(intervals)
    assert [(one.start, one.end) for one in intervals] == before


@given(stretches, moments, moments)
def test_gaps_are_what_is_left(intervals: list[Interval], start: int, end: int) -> None:
    assert covered(gaps(intervals, start, end)) == set(range(start, end)) - covered(intervals)


@given(stretches, moments, moments)
def test_cover_counts_each_stretch(intervals: list[Interval], start: int, end: int) -> None:
    wanted = sum(len(set(range(start, end)) & covered([one])) for one in intervals)
    assert Cover(intervals).overlap(start, end) == wanted


@pytest.mark.parametrize(
    ("intervals", "torchs", "true"),
    [
        ([(0, 50), (10, 20), (60, 70)], 50, 60),
        ([(0, 10), (5, 20), (15, 30)], 20, 30),
        ([(0, 5), (10, 20), (15, 40), (50, 60)], 50, 45),
    ],
    ids=["after a covered one", "after a merge", "disjoint before"],
)
def test_torchs_overlap_is_not_the_union(intervals: list[tuple[int, int]], torchs: int, true: int) -> None:
    assert torch_overlap(0, 100, [Interval(*one) for one in intervals])[0] == torchs
    assert Cover(union([Interval(*one) for one in intervals])).overlap(0, 100) == true


@given(stretches, st.lists(st.tuples(moments, moments), max_size=8))
def test_torchs_answers_are_the_same_by_search(
    intervals: list[Interval], events: list[tuple[int, int]]
) -> None:
    copies = [Interval(one.start, one.end) for one in intervals]
    wanted = [torch_overlap(start, end, copies)[0] for start, end in events]
    assert torch_overlaps(events, intervals) == wanted
