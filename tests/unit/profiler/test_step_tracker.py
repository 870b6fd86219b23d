"""The step count that several parties share."""

import importlib.util

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_opprof import KinetoStepTracker, profile, schedule
from pytest_opprof.profiler.step_tracker import own_steps


@pytest.fixture(autouse=True)
def _own_steps() -> object:
    with own_steps():
        yield


def test_foremost_requester_moves_the_process_on() -> None:
    KinetoStepTracker.init_step_count("one")
    assert [KinetoStepTracker.increment_step(name) for name in ("one", "two", "one", "two")] == [1, 2, 2, 3]
    assert KinetoStepTracker.current_step() == 3


def test_requester_begins_where_the_process_is() -> None:
    for _ in range(3):
        KinetoStepTracker.increment_step("one")
    assert KinetoStepTracker.increment_step("late") == 4
    assert KinetoStepTracker.erase_step_count("late")
    assert not KinetoStepTracker.erase_step_count("late")


def test_a_leap_is_warned_of() -> None:
    KinetoStepTracker.init_step_count("one")
    KinetoStepTracker._step_dict["one"] += 5
    with pytest.warns(UserWarning, match="Profiler step count has increased more than 1 - current_step = 0"):
        assert KinetoStepTracker.increment_step("one") == 6


def test_profilers_count_their_steps() -> None:
    with profile(schedule=schedule(wait=0, warmup=1, active=2, repeat=1)) as prof:
        for _ in range(3):
            prof.step()
        assert KinetoStepTracker.current_step() == 3
    assert not KinetoStepTracker.erase_step_count("ProfilerStep")


def test_own_steps_do_not_change_outer_counts() -> None:
    KinetoStepTracker.increment_step("outer")
    with own_steps():
        assert KinetoStepTracker.current_step() == 0
        KinetoStepTracker.increment_step("inner")
        KinetoStepTracker.increment_step("inner")
    assert KinetoStepTracker.current_step() == 1
    assert not KinetoStepTracker.erase_step_count("inner")


turns = st.lists(st.tuples(st.sampled_from(["init", "step", "erase"]), st.sampled_from("abc")), max_size=40)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@given(turns)
def test_counts_match_torchs(turns: list[tuple[str, str]]) -> None:
    from torch.autograd.profiler import KinetoStepTracker as Torchs  # only where it is there

    Torchs._current_step = 0
    Torchs._step_dict.clear()
    with own_steps():
        for turn, name in turns:
            for tracker in (KinetoStepTracker, Torchs):
                {
                    "init": tracker.init_step_count,
                    "step": tracker.increment_step,
                    "erase": tracker.erase_step_count,
                }[turn](name)
            assert KinetoStepTracker.current_step() == Torchs.current_step()
            assert KinetoStepTracker._step_dict == Torchs._step_dict
