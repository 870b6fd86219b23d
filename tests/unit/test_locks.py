"""Locks: one holder at a time, by the system's own locks and by those of Windows."""

import os
from pathlib import Path

import pytest
from elsewhere import WINDOWS

from pytest_opprof import locks
from pytest_opprof.locks import hold, opened


@pytest.fixture(params=["here", "windows"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "windows":
        monkeypatch.setattr(locks, "_WINDOWS", WINDOWS)
    return str(request.param)


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_second_holder_is_refused_until_first_lets_go(what: str, tmp_path: Path) -> None:
    path = tmp_path if what == "folder" else tmp_path / "lock"
    first, second = opened(path), opened(path)
    try:
        hold(first, waits=False)
        with pytest.raises(OSError, match=r"unavailable|denied"):
            hold(second, waits=False)
        os.close(first)
        hold(second, waits=False)
    finally:
        os.close(second)


def test_shared_holders_welcome_each_other(tmp_path: Path) -> None:
    first, second = opened(tmp_path / "lock"), opened(tmp_path / "lock")
    hold(first, shared=True)
    hold(second, shared=True, waits=False)
    os.close(first)
    os.close(second)


def test_windows_is_asked_until_the_holder_lets_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, second = opened(tmp_path / "lock"), opened(tmp_path / "lock")
    monkeypatch.setattr(locks, "_WINDOWS", WINDOWS)
    hold(first)
    waited: list[float] = []

    def let_go(seconds: float) -> None:
        waited.append(seconds)
        os.close(first)

    monkeypatch.setattr("pytest_opprof.locks.time.sleep", let_go)
    hold(second)
    os.close(second)
    assert len(waited) == 1
