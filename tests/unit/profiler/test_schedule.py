"""Schedules: which step does what."""

import enum
import warnings

import pytest

from pytest_opprof.profiler.schedule import ProfilerAction, action_of, record_always, schedule

LETTERS = {
    ProfilerAction.NONE: "N",
    ProfilerAction.WARMUP: "W",
    ProfilerAction.RECORD: "R",
    ProfilerAction.RECORD_AND_SAVE: "S",
}


def foreign_enum(name: str) -> type[enum.Enum]:
    """Another library's actions."""
    numbers = {"NONE": 0, "RECORD": 2, "DEVICE_STOPPED": 4}
    members: type[enum.Enum] = enum.Enum(name, numbers)  # type: ignore[misc]  # not its own name
    return members


def actions(steps: int, **numbers: int) -> str:
    """The first steps' actions as letters."""
    plan = schedule(**numbers)
    return "".join(LETTERS[plan(step)] for step in range(steps))


def test_action_numbers_match_torchs() -> None:
    assert {action.name: action.value for action in ProfilerAction} == {
        "NONE": 0,
        "WARMUP": 1,
        "RECORD": 2,
        "RECORD_AND_SAVE": 3,
    }


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        pytest.param({"wait": 1, "warmup": 1, "active": 2}, "NWRSNWRSNWRS", id="cycles-go-on"),
        pytest.param({"wait": 1, "warmup": 1, "active": 2, "repeat": 2}, "NWRSNWRSNNN", id="repeat-ends"),
        pytest.param(
            {"wait": 1, "warmup": 1, "active": 2, "repeat": 1, "skip_first": 3}, "NNNNWRSNN", id="skip-first"
        ),
        pytest.param(
            {"wait": 3, "warmup": 1, "active": 2, "repeat": 2, "skip_first": 2, "skip_first_wait": 1},
            "NNWRSNNNWRSNN",
            id="first-cycle-loses-its-wait",
        ),
        pytest.param({"wait": 0, "warmup": 1, "active": 1}, "WSWSWS", id="one-active-step-has-no-record"),
    ],
)
def test_steps_follow_the_plan(numbers: dict[str, int], expected: str) -> None:
    assert actions(len(expected), **numbers) == expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"wait": -1, "warmup": 1, "active": 1},
        {"wait": 0, "warmup": -1, "active": 1},
        {"wait": 0, "warmup": 1, "active": 0},
        {"wait": 0, "warmup": 1, "active": 1, "repeat": -1},
        {"wait": 0, "warmup": 1, "active": 1, "skip_first": -1},
    ],
    ids=lambda wrong: next(name for name, number in wrong.items() if number <= (name == "active") - 1),
)
def test_impossible_numbers_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(AssertionError, match=r"Invalid profiler schedule arguments"):
        schedule(**wrong)


def test_negative_step_is_refused() -> None:
    with pytest.raises(AssertionError, match=r"Step must be non-negative. Got -1"):
        schedule(wait=0, warmup=1, active=1)(-1)


def test_missing_warmup_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="won't be using warmup") as caught:
        schedule(wait=0, warmup=0, active=1)
    assert [warning.filename for warning in caught] == [__file__]


def test_warmup_is_not_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule(wait=0, warmup=1, active=1)


def test_no_schedule_records_always() -> None:
    assert {record_always(step) for step in range(5)} == {ProfilerAction.RECORD}


def test_torchs_actions_are_understood() -> None:
    assert action_of(foreign_enum("ProfilerAction")["RECORD"], step=0) is ProfilerAction.RECORD


@pytest.mark.parametrize("garbage", [2, "RECORD", None, True, foreign_enum("Other")["RECORD"]], ids=repr)
def test_other_answers_are_refused(garbage: object) -> None:
    with pytest.raises(ValueError, match=r"for step 7; it must return one of ProfilerAction.NONE"):
        action_of(garbage, step=7)


def test_torchs_internal_action_is_refused() -> None:
    with pytest.raises(ValueError, match="DEVICE_STOPPED"):
        action_of(foreign_enum("ProfilerAction")["DEVICE_STOPPED"], step=0)
