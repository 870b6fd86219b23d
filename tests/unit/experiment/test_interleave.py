"""The order of processes."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_opprof.experiment.interleave import Side, turns


@given(st.integers(1, 40), st.integers(0, 2**32))
def test_both_sides_have_the_same_number_of_processes_and_of_hash_seeds(processes: int, seed: int) -> None:
    planned = turns(processes, seed=seed)
    assert Counter(turn.side for turn in planned) == dict.fromkeys(Side, processes)
    assert [turn.index for turn in planned] == list(range(2 * processes))
    seeds = {side: [turn.hash_seed for turn in planned if turn.side is side] for side in Side}
    assert seeds[Side.BASE] == seeds[Side.HEAD]
    assert all(0 < each < 2**32 for each in seeds[Side.BASE])


@given(st.integers(1, 40), st.integers(0, 2**32))
def test_a_steady_drift_adds_the_same_to_both_sides(processes: int, seed: int) -> None:
    sides = [turn.side for turn in turns(processes, seed=seed)]
    for start in range(0, len(sides) - 3, 4):
        first, second, third, fourth = sides[start : start + 4]
        assert (first, second) == (fourth, third)
        assert first is second.other


@given(st.integers(1, 20), st.integers(0, 2**32))
def test_longer_order_extends_the_shorter(processes: int, seed: int) -> None:
    assert turns(2 * processes, seed=seed)[: 2 * processes] == turns(processes, seed=seed)


def test_first_side_of_a_block_is_random() -> None:
    begins = Counter(turn.side for turn in turns(400, seed=7) if turn.index % 4 == 0)
    assert all(count > 60 for count in begins.values())


def test_a_seed_gives_one_order() -> None:
    assert turns(12, seed=3) == turns(12, seed=3)
    assert turns(12, seed=3) != turns(12, seed=4)


@pytest.mark.parametrize("side", Side)
def test_a_side_has_another(side: Side) -> None:
    assert side.other is not side
    assert side.other.other is side
