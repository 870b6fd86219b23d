"""Activities: which may be requested, and the messages about them."""

import enum
import warnings

import pytest

from pytest_opprof.profiler.activities import (
    ProfilerActivity,
    parse_activities,
    supported_activities,
    warn_of_missing,
    without_or_with_cuda,
)

CPU, CUDA = ProfilerActivity.CPU, ProfilerActivity.CUDA


def foreign_enum(name: str) -> type[enum.Enum]:
    """Another library's activities."""
    members: type[enum.Enum] = enum.Enum(name, {"CPU": 0, "CUDA": 2})  # type: ignore[misc]  # not its own name
    return members


def test_cpu_is_the_default_activity() -> None:
    assert parse_activities(None) == supported_activities() == {CPU}


def test_dicts_name_activities_too() -> None:
    with pytest.warns(UserWarning, match=r"activity types \(GPU_MEMCPY\) cannot be chosen one by one"):
        assert parse_activities([CPU, {CUDA: ["GPU_MEMCPY"]}]) == {CPU, CUDA}


def test_torchs_members_are_understood() -> None:
    assert parse_activities(foreign_enum("ProfilerActivity")) == {CPU, CUDA}


def test_repeated_activity_is_refused() -> None:
    with pytest.raises(ValueError, match="activity CPU is given more than once"):
        parse_activities([CPU, CPU])


@pytest.mark.parametrize("wrong", ["CPU", 0, *foreign_enum("Other")], ids=repr)
def test_other_things_are_refused(wrong: object) -> None:
    with pytest.raises(TypeError, match="must hold ProfilerActivity members"):
        parse_activities([wrong])


def test_no_activity_is_refused() -> None:
    with pytest.raises(AssertionError, match="No valid profiler activities found"):
        parse_activities([])


@pytest.mark.parametrize(("use_cuda", "expected"), [(True, {CPU, CUDA}), (False, {CPU})], ids=["on", "off"])
def test_use_cuda_is_deprecated_and_obeyed(use_cuda: bool, expected: set[ProfilerActivity]) -> None:  # a case
    with pytest.warns(FutureWarning, match="`use_cuda` is deprecated"):
        chosen = without_or_with_cuda([CPU] if use_cuda else [CPU, CUDA], use_cuda=use_cuda)
    assert parse_activities(chosen) == expected


def test_missing_devices_are_warned_of_in_one_sentence() -> None:
    with pytest.warns(UserWarning, match="CUDA") as caught:
        warn_of_missing({CPU, CUDA, ProfilerActivity.XPU})
    assert [str(warning.message) for warning in caught] == [
        "CUDA and XPU activity is not available here: the results will not include it"
    ]


def test_no_warning_if_nothing_is_missing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_missing({CPU})
