"""The machine's usual speed, and deviations from it."""

import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_opprof.capture.speed import USUAL_NS, Pace, Speed, probe_ns, probes, usual_ns


def spread(low: int, high: int, *, count: int) -> list[int]:
    """Probes on a machine with other load: each is slowed down by another share."""
    source = random.Random(1)  # noqa: S311 - numbers to test with
    return [source.randint(low, high) for _ in range(count)]


def test_usual_speed_is_neither_boosted_nor_disturbed() -> None:
    usual = [32_490 + at % 7 for at in range(300)]
    assert 32_490 <= usual_ns([*[27_080] * 9, *usual, *spread(36_000, 43_000, count=600)]) <= 32_496


def test_a_neighbour_that_is_nearly_always_there_is_not_usual() -> None:
    assert usual_ns([*[27_080] * 5, *[32_490] * 40, *[37_800] * 955]) == 32_490


@pytest.mark.parametrize("border", range(31_000, 34_000, 137))
def test_a_peak_on_the_border_of_two_bins_is_one(border: int) -> None:
    probes = [border - 3, border - 1, border, border + 1, border + 3] * 60
    assert abs(usual_ns([*probes, *[27_000] * 4]) - border) <= 3


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=50))
def test_the_usual_speed_is_one_of_those_seen(probes: list[int]) -> None:
    assert usual_ns(probes) in probes


@pytest.mark.parametrize(
    ("took", "pace"),
    [
        pytest.param(979, Pace.FAST, id="boosted"),
        pytest.param(981, Pace.USUAL, id="just-not-boosted"),
        pytest.param(1_019, Pace.USUAL, id="just-not-slow"),
        pytest.param(1_021, Pace.SLOW, id="slow"),
    ],
)
def test_two_percent_make_a_difference(took: int, pace: Pace) -> None:
    assert Speed(1_000).pace(took) is pace


def test_a_real_probe_does_its_work() -> None:
    assert all(probe_ns() > 1_000 for _ in range(10))


def pace_of(environment: dict[str, str]) -> Pace:
    speed = Speed.of_process(environment)
    return speed.pace(speed.probe_ns())


def test_experiment_passes_the_usual_speed_on() -> None:
    assert pace_of({USUAL_NS: str(10**12)}) is Pace.FAST
    assert pace_of({USUAL_NS: "1"}) is Pace.SLOW


def test_single_process_finds_the_usual_speed_itself() -> None:
    assert USUAL_NS not in os.environ
    seen = {pace_of({}) for _ in range(3)}
    assert seen <= set(Pace)
    assert all(took > 0 for took in probes())
