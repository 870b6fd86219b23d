"""Our schedules against torch's, for every small combination of numbers."""

import itertools
import warnings
from collections.abc import Callable
from functools import cache

import pytest

from pytest_opprof.profiler.schedule import schedule

STEPS = range(30)
NUMBERS = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")


@cache
def is_terse() -> bool:
    """Before torch 2.10, an error did not name the numbers, as ours does."""
    try:
        pytest.importorskip("torch").profiler.schedule(wait=0, warmup=0, active=0)
    except AssertionError as error:
        return ". Got " not in str(error)
    raise AssertionError("torch takes a schedule without an active step")


def outcome(make: Callable[..., Callable[[int], object]], numbers: dict[str, int]) -> object:
    """The actions of a schedule with these numbers, including warnings and errors."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            plan = make(**numbers)
        except AssertionError as error:
            return str(error).split(". Got ")[0] if is_terse() else str(error)
        actions = [getattr(plan(step), "name", None) for step in STEPS]
    return actions, [(str(warning.message), warning.category) for warning in caught]


def test_every_small_schedule_equals_torchs() -> None:
    torch_schedule = pytest.importorskip("torch").profiler.schedule
    tried = itertools.product(range(4), range(3), range(4), range(4), range(3), range(2))
    for numbers in (dict(zip(NUMBERS, values, strict=True)) for values in tried):
        assert outcome(schedule, numbers) == outcome(torch_schedule, numbers), numbers


@pytest.mark.parametrize("name", NUMBERS)
def test_negative_numbers_are_treated_like_torchs(name: str) -> None:
    torch_schedule = pytest.importorskip("torch").profiler.schedule
    numbers = {"wait": 1, "warmup": 1, "active": 2, "repeat": 1, "skip_first": 1, name: -1}
    assert outcome(schedule, numbers) == outcome(torch_schedule, numbers)
