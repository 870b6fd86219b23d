"""Exact rank tests and false-discovery control, against scipy."""

import itertools
import os
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_opprof.compare.timing.significance import (
    combined_p,
    discoveries,
    p_of_rise,
    p_of_rise_of_fast,
    processes_needed,
    smallest_p,
)

EXAMPLES = 300 if os.environ.get("OPPROF_COUNTS") == "all" else 20
few = st.lists(st.integers(0, 6), min_size=1, max_size=5)
two_or_more = st.lists(st.integers(0, 6), min_size=2, max_size=4)  # scipy does not permute a sample of one


def rank_sum_of(both: list[int], *, base: int) -> float:
    return float(stats.rankdata(both)[base:].sum())


@settings(max_examples=EXAMPLES, deadline=None)
@given(two_or_more, two_or_more)
def test_p_with_ties_matches_all_permutations(base: list[int], head: list[int]) -> None:
    def statistic(one: list[int], other: list[int]) -> float:
        return rank_sum_of([*one, *other], base=len(one))

    oracle = stats.permutation_test(
        (base, head), statistic, alternative="greater", n_resamples=10_000, vectorized=False
    )
    assert p_of_rise(base, head) == pytest.approx(oracle.pvalue)


@settings(max_examples=EXAMPLES, deadline=None)
@given(few, few)
def test_p_with_ties_matches_counting(base: list[int], head: list[int]) -> None:
    ranks = stats.rankdata([*base, *head])
    sums = Counter(sum(chosen) for chosen in itertools.combinations(ranks, len(head)))
    observed = sum(ranks[len(base) :])
    as_high = sum(count for total, count in sums.items() if total >= observed)
    assert p_of_rise(base, head) == pytest.approx(as_high / sums.total())


@pytest.mark.parametrize("size", [3, 8, 12])
def test_p_without_ties_is_mann_whitneys(size: int) -> None:
    source = random.Random(size)  # noqa: S311 - numbers to test with
    for _ in range(10):
        values = source.sample(range(1_000), 2 * size)
        base, head = values[:size], values[size:]
        oracle = stats.mannwhitneyu(head, base, alternative="greater", method="exact")
        assert p_of_rise(base, head) == pytest.approx(oracle.pvalue)


@pytest.mark.parametrize(("size", "values"), [(41, 8), (41, 1_000), (1_000, 50), (1_000, 1_000_000)])
def test_p_of_many_values_is_the_normal_approximation(size: int, values: int) -> None:
    source = random.Random(size)  # noqa: S311 - numbers to test with
    for shift in (0, values // 8):
        base = [source.randrange(values) for _ in range(size)]
        head = [source.randrange(values) + shift for _ in range(size)]
        oracle = stats.mannwhitneyu(head, base, alternative="greater", method="asymptotic")
        assert p_of_rise(base, head) == pytest.approx(oracle.pvalue)
    assert p_of_rise([1] * size, [1] * size) == 1


def test_normal_approximation_is_near_the_exact_p_and_errs_to_no_change() -> None:
    """The error that its docstring names."""
    base = [*range(41)]
    for above in range(41):
        head = [value + above + 0.5 for value in base]
        ranks = [int(rank) for rank in stats.rankdata([*base, *head])]
        exact = float(
            stats.mannwhitneyu(ranks[41:], ranks[:41], alternative="greater", method="exact").pvalue
        )
        p = p_of_rise(ranks[:41], ranks[41:])
        assert p == pytest.approx(exact, abs=0.001)
        if exact < 0.001:
            assert p > exact
        if exact > 0.0001:
            assert p == pytest.approx(exact, rel=0.35)


def test_scipys_exact_method_is_wrong_with_ties() -> None:
    base, head = [1, 1, 2, 2], [2, 2, 3, 3]
    assert p_of_rise(base, head) == pytest.approx(6 / 70)
    assert stats.mannwhitneyu(head, base, alternative="greater", method="exact").pvalue < 6 / 70


@given(few, few)
def test_opposite_tests_share_the_ties(base: list[int], head: list[int]) -> None:
    assert p_of_rise(base, head) + p_of_rise(head, base) >= 1


def test_equal_sides_are_not_a_rise() -> None:
    assert p_of_rise([5, 5, 5], [5, 5, 5]) == 1


@pytest.mark.parametrize(("count", "p"), [(3, 0.05), (8, 7.77e-5), (12, 3.698e-7)])
def test_separated_sides_have_the_smallest_p(count: int, p: float) -> None:
    assert smallest_p(count, count) == pytest.approx(p, rel=1e-3)
    assert p_of_rise(range(count), range(count, 2 * count)) == pytest.approx(smallest_p(count, count))


@pytest.mark.parametrize(("base", "head"), [(12, 12), (12, 13), (13, 12), (8, 14), (14, 8), (1, 6)])
def test_smallest_p_of_the_fast_is_reached_both_ways(base: int, head: int) -> None:
    below, above = range(base), range(base, base + head)
    found = (
        p_of_rise_of_fast(below, above),
        p_of_rise_of_fast([-each for each in above], [-each for each in below]),
    )
    assert max(found) == pytest.approx(smallest_p(base, head))


@settings(max_examples=EXAMPLES, deadline=None)
@given(few, few)
def test_p_of_the_fast_matches_all_permutations(base: list[int], head: list[int]) -> None:
    both = [*base, *head]
    middle = sorted(both)[(len(both) - 1) // 2]
    ranks = stats.rankdata([min(value, middle + 0.5) for value in both])
    sums = Counter(sum(chosen) for chosen in itertools.combinations(ranks, len(head)))
    as_high = sum(count for total, count in sums.items() if total >= sum(ranks[len(base) :]))
    assert p_of_rise_of_fast(base, head) == pytest.approx(as_high / sums.total())


@given(st.permutations(range(12)), st.integers(2, 10))
def test_slowness_of_slow_values_does_not_matter(values: list[int], factor: int) -> None:
    sides = values[:6], values[6:]
    slower = [[value * factor if value > 5 else value for value in side] for side in sides]
    assert p_of_rise_of_fast(*slower) == p_of_rise_of_fast(*sides)


@pytest.mark.parametrize(
    ("hypotheses", "needed"), [(0, 3), (1, 3), (10, 5), (100, 7), (500, 8), (2_000, 9), (5_000, 10)]
)
def test_more_hypotheses_need_more_processes(hypotheses: int, needed: int) -> None:
    assert processes_needed(hypotheses, rate=0.05) == needed


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.sampled_from([0.01, 0.05, 0.2]))
def test_discoveries_match_scipy(p_values: list[float], rate: float) -> None:
    adjusted = stats.false_discovery_control(p_values, method="bh")
    # scipy divides where ours multiplies: a p that is right on the line may round either way.
    for found, value in zip(discoveries(p_values, rate=rate), adjusted, strict=True):
        assert found == (value <= rate) or value == pytest.approx(rate)


@given(st.lists(st.floats(1e-9, 1), min_size=1, max_size=4))
def test_rounds_combine_as_in_scipy(p_values: list[float]) -> None:
    oracle = stats.combine_pvalues(p_values, method="fisher").pvalue
    assert combined_p(p_values) == pytest.approx(oracle)


def test_no_hypothesis_gives_no_discovery() -> None:
    assert discoveries([], rate=0.05) == []
