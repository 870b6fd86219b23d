"""Processes of an experiment that do not end, with real ones."""

import os
import sys
from pathlib import Path

import pytest

from pytest_opprof.errors import UsageError
from pytest_opprof.experiment import session

# Says when it waits: what it is sent after that is what ends it.
WAITS = "print('waiting', flush=True); signal.pause()"
DEAF = "[signal.signal(each, signal.SIG_IGN) for each in ({})]; "


def ended(text: str, folder: Path, *, timeout: float | None = None) -> session.Ended:
    command = [sys.executable, "-c", f"import signal, subprocess, sys; {text}"]
    return session.run(command, folder=folder, environment=os.environ, timeout=timeout)


@pytest.mark.slow
def test_what_hangs_is_interrupted_and_shows_where(tmp_path: Path) -> None:
    done = ended(WAITS, tmp_path, timeout=5)
    assert done.ending == "no end in 5 s (--timeout)"
    assert done.tail.splitlines()[0] == "waiting"
    assert "KeyboardInterrupt" in done.tail


@pytest.mark.slow
@pytest.mark.parametrize(
    ("deaf_to", "killed_by"),
    [("signal.SIGINT,", "SIGTERM"), ("signal.SIGINT, signal.SIGTERM", "SIGKILL")],
    ids=["deaf-to-interrupts", "deaf"],
)
def test_what_does_not_hear_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deaf_to: str, killed_by: str
) -> None:
    monkeypatch.setattr(session, "_PATIENCE_S", 0.2)
    done = ended(DEAF.format(deaf_to) + WAITS, tmp_path, timeout=5)
    assert (done.late, done.tail) == (5, "waiting")
    assert session.Ended(code=done.code, pid=done.pid, tail="").ending == f"killed by {killed_by}"


@pytest.mark.slow
def test_what_it_started_is_ended_too(tmp_path: Path) -> None:
    child = f"import signal; {DEAF.format('signal.SIGINT,')}{WAITS}"
    pid = "print(process.pid, flush=True); "
    text = f"process = subprocess.Popen([sys.executable, '-c', {child!r}]); {pid}signal.pause()"
    done = ended(text, tmp_path, timeout=5)
    (number,) = (line for line in done.tail.splitlines() if line.isdigit())
    assert done.late == 5
    assert not Path("/proc", number, "exe").exists(), "what is dead has no program any more"


def test_what_ends_in_time_ended_by_itself(tmp_path: Path) -> None:
    done = ended("sys.exit(3)", tmp_path, timeout=300)
    assert (done.late, done.ending, done.tail) == (None, "exit code 3", "it printed nothing")


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_no_time_to_wait_is_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match=r"--timeout=.*: it is a number of seconds above 0"):
        session.check_timeout(seconds)
