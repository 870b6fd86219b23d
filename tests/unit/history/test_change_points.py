"""Change points: quiet on noise, exact on shifts, and honest without ruptures."""

import random
import sys

import pytest

from pytest_opprof.history.change_points import MOST_POINTS, shifts

LEVEL = 4e6


def noisy(*levels: float, length: int = 60, noise: float = 0.05, seed: int = 0) -> list[float]:
    """Consecutive levels with machine noise: mostly small, sometimes a run far above."""
    source = random.Random(seed)  # noqa: S311  # no secret
    return [
        level * (1 + abs(source.gauss(0, noise))) * (3 if source.random() < 0.03 else 1)
        for level in levels
        for _ in range(length)
    ]


def test_unchanged_noise_has_no_shift(large_counts: bool) -> None:
    pytest.importorskip("ruptures")
    series = 1_000 if large_counts else 100
    flagged = sum(bool(shifts(noisy(LEVEL, length=100, seed=seed)).at) for seed in range(series))
    assert flagged <= series * 0.02


@pytest.mark.parametrize("factor", [0.8, 1.2, 1.5, 10])
def test_shift_is_located(factor: float) -> None:
    pytest.importorskip("ruptures")
    found = [shifts(noisy(LEVEL, LEVEL * factor, seed=seed)).at for seed in range(20)]
    assert sum(len(at) == 1 and abs(at[0] - 60) <= 3 for at in found) >= 19


def test_each_of_several_shifts_is_found() -> None:
    pytest.importorskip("ruptures")
    found = shifts(noisy(LEVEL, LEVEL * 1.5, LEVEL * 1.2, seed=5)).at
    assert len(found) == 2
    assert abs(found[0] - 60) <= 2
    assert abs(found[1] - 120) <= 2


def test_noiseless_series_has_exact_shifts() -> None:
    pytest.importorskip("ruptures")
    assert shifts([LEVEL] * 50).at == ()
    assert shifts([LEVEL] * 20 + [LEVEL * 1.1] * 20).at == (20,)
    assert shifts([LEVEL] * 20 + [LEVEL * 1.01] * 20).at == (), "too small to tell from another day"
    assert shifts([0.0] * 20 + [5.0] * 20).at == (20,)


def test_short_excursion_is_not_a_level() -> None:
    pytest.importorskip("ruptures")
    assert shifts([*[LEVEL] * 30, LEVEL * 4, *[LEVEL] * 30]).at == ()


@pytest.mark.parametrize("length", [0, 1, 2, 5, 9])
def test_few_runs_have_no_shift(length: int) -> None:
    pytest.importorskip("ruptures")
    assert shifts(noisy(LEVEL, length=length)).at == ()


def test_only_the_end_of_a_long_series_is_searched() -> None:
    pytest.importorskip("ruptures")
    early, late = 100, MOST_POINTS
    values = [1.0 * LEVEL] * early + [2.0 * LEVEL] * late + [3.0 * LEVEL] * 50
    assert shifts(values).at == (early + late,)


def test_missing_ruptures_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ruptures", None)
    found = shifts([1.0] * 99)
    assert found.at == ()
    assert found.problem == "change points of times need ruptures: pip install 'pytest-opprof[stats]'"
