"""Locks: one holder at a time, by the system's own locks and by those of Windows."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.programs.elsewhere import WINDOWS

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
        hold(first, limit_s=0)
        with pytest.raises(OSError, match=r"another process|process [0-9]+"):
            hold(second, limit_s=0)
        os.close(first)
        hold(second, limit_s=0)
    finally:
        os.close(second)


def test_shared_holders_welcome_each_other(tmp_path: Path) -> None:
    first, second = opened(tmp_path / "lock"), opened(tmp_path / "lock")
    hold(first, shared=True)
    hold(second, shared=True, limit_s=0)
    os.close(first)
    os.close(second)


@pytest.mark.parametrize("is_stopped", [False, True])
def test_timeout_names_the_holder(tmp_path: Path, is_stopped: bool) -> None:
    program = "import sys, time; from pytest_opprof.locks import *; hold(opened(Path(sys.argv[1])))"
    holder = subprocess.Popen(
        [sys.executable, "-c", f"{program}; print(flush=True); time.sleep(60)", str(tmp_path)],
        stdout=subprocess.PIPE,
    )
    descriptor = opened(tmp_path)
    with holder:
        try:
            assert holder.stdout is not None
            holder.stdout.readline()
            if is_stopped:
                holder.send_signal(signal.SIGSTOP)
                os.waitpid(holder.pid, os.WUNTRACED)
            stopped = ", which is stopped," if is_stopped else ""
            with pytest.raises(
                TimeoutError, match=f"process {holder.pid}{stopped} still holds it after 0.1 s"
            ):
                hold(descriptor, limit_s=0.1)
        finally:
            holder.kill()
    hold(descriptor, limit_s=10)
    os.close(descriptor)


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
