"""A process that is started while a signal arrives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from pytest_opprof import children
from pytest_opprof.capture.cxx import fault_of
from pytest_opprof.children import started
from pytest_opprof.experiment.session import run

_SLEEPS = [sys.executable, "-c", "import time; time.sleep(60)"]


class _Killed(BaseException):
    """Raised by a SIGTERM handler, as by that of `opprof prepare`."""


class _Hit(subprocess.Popen[Any]):
    """A started process. Before its constructor returns, this process gets SIGTERM."""

    pids: list[int]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.pids.append(self.pid)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.2)  # it is delivered before this returns


@pytest.fixture
def pids(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    def end(number: int, frame: object) -> NoReturn:
        raise _Killed

    found: list[int] = []
    monkeypatch.setattr(_Hit, "pids", found, raising=False)
    monkeypatch.setattr(children, "Popen", _Hit)
    before = signal.signal(signal.SIGTERM, end)
    yield found
    signal.signal(signal.SIGTERM, before)


def test_a_signal_while_a_compiler_starts_ends_it(pids: list[int], tmp_path: Path) -> None:
    with pytest.raises(_Killed):
        fault_of(_SLEEPS, tmp_path / "out", limit_s=60)
    _expect_gone(pids)


def test_a_signal_while_a_side_starts_ends_it(pids: list[int], tmp_path: Path) -> None:
    with pytest.raises(_Killed):
        run(_SLEEPS, folder=tmp_path, environment=dict(os.environ))
    _expect_gone(pids)


def test_a_server_that_a_command_leaves_does_not_delay_its_end(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    command = ["/bin/sh", "-c", f"echo built; (cat {gate}; echo later) & echo $!"]
    done = run(command, folder=tmp_path, environment=dict(os.environ), timeout=60)
    built, server = done.output.splitlines()
    assert (built, done.code, done.late) == ("built", 0, None)
    os.kill(int(server), 0)
    gate.write_text("")


@pytest.mark.slow
def test_a_timeout_ends_a_command_and_what_it_started(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    # Both hold the fifo; its end is read once neither is left.
    command = [
        "/bin/sh",
        "-c",
        f"exec 3> {alive}; (trap '' INT TERM; while :; do sleep 60; done) & echo here; wait",
    ]
    ends: list[bytes] = []
    reader = threading.Thread(target=lambda: ends.append(alive.read_bytes()))
    reader.start()
    done = run(command, folder=tmp_path, environment=dict(os.environ), timeout=2)
    reader.join(timeout=60)
    assert (ends, done.late, done.output) == ([b""], 2, "here")


TIED = """\
import os, signal, sys
from pytest_opprof.children import Tether, started

with Tether() as tether:
    command = f"exec 3> {sys.argv[1]}; sleep 60 & sleep 60; echo survived >&3"
    tether.tie(started(["/bin/sh", "-c", command], pass_fds=(tether.end,)))
    print("tied", flush=True)
    signal.pause()
"""


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGKILL])
def test_a_tied_process_ends_with_all_it_started_when_its_parent_is_killed(
    tmp_path: Path, kind: signal.Signals
) -> None:
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    command = [sys.executable, "-c", TIED, str(alive)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent, alive.open() as told:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "tied\n"
        parent.send_signal(kind)
        assert told.read() == ""


def test_unstartable_program_is_reported(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="absent"):
        started([str(tmp_path / "absent")])


def _expect_gone(pids: list[int]) -> None:
    assert len(pids) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
