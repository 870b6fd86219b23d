"""A real session with a fault, and checks that it ends, loses no file and reports nothing wrong."""

from __future__ import annotations

import contextlib
import enum
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chaos.faults import Fault
from e2e.project import Project, environment

from pytest_opprof.results.files import read_run

_STOPPED_FOR_S: Final = 0.3  # the fault itself: how long a process stands still
_CHANGED: Final = "CHAOS_MORE"
# The tested code is in a separate module, because both sides of an A/B run the head's tests.
_WORK: Final = """
    import os

    MORE = os.environ.get("CHAOS_MORE", "")

    def calls(number):
        return 10 + (bool(MORE) and number == 1)
"""
_TESTS: Final = """
    import ctypes, gc, os, signal, subprocess, sys, tempfile, threading, time
    import pytest
    from pytest_opprof import record_function
    from work import calls

    INSIDE = os.environ.get("CHAOS_INSIDE", "")

    @pytest.mark.profile(warmup=1, active=2)
    @pytest.mark.parametrize("number", range(3))
    def test_step(number):
        for _ in range(calls(number)):
            with record_function("work"):
                sum(range(100))
        exec(INSIDE, globals(), {})
"""
_PASSED, _FAILED = 0, 1


class Mode(enum.Enum):
    """How the tests are run."""

    PLAIN = "plain"
    XDIST = "xdist"
    AB = "A/B"

    @property
    def signalled_within_s(self) -> float:
        """About how many seconds a session takes; a signal comes at any moment of it."""
        return 8.0 if self is Mode.AB else 2.0

    @property
    def longest_s(self) -> float:
        """Seconds after which a session counts as hung; an A/B may start up to 64 processes."""
        return 1_200.0 if self is Mode.AB else 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What happens in one session.

    Attributes:
        fault: The harm.
        mode: How the tests run.
        saves: The session saves a baseline; otherwise it is compared with one.
        is_changed: A test does more than in its baseline.
        moment: When a signal is sent, as a share of the session's duration.
    """

    fault: Fault
    mode: Mode
    saves: bool
    is_changed: bool
    moment: float

    def __str__(self) -> str:
        done = "saves" if self.saves else "compares"
        return (
            f"{self.mode.value}, {done}, {'changed' if self.is_changed else 'unchanged'}: {self.fault.name}"
        )


def draw(chance: random.Random, faults: tuple[Fault, ...]) -> Drawn:
    mode = chance.choices(list(Mode), weights=[5, 3, 1])[0]
    return Drawn(
        fault=chance.choice(faults),
        mode=mode,
        saves=mode is not Mode.AB and chance.random() < 1 / 3,
        is_changed=chance.random() < 1 / 2,
        moment=chance.random(),
    )


def template(folder: Path) -> Project:
    """A project with a baseline, to be copied."""
    project = Project(folder)
    project.write("work.py", _WORK)
    project.write("test_it.py", _TESTS)
    project.write(".gitignore", ".opprof/\n__pycache__/\n")
    project.git("init", "-q", "-b", "main")
    project.commit()
    saved = project.pytest("--opprof-save=main", writes_run=False)
    assert saved.exit_code == _PASSED, saved.stdout
    return project


def tried(made: Project, folder: Path, drawn: Drawn) -> list[str]:
    """Run a session in a copy of a project.

    Returns:
        What went wrong; empty if nothing did.
    """
    shutil.copytree(made.folder, folder, symlinks=True)
    sessions = folder / "sessions"
    sessions.mkdir()
    before = stored(folder)
    with _harmed(folder, drawn.fault):
        ended = _session(folder, sessions, drawn)
    problems = list(problems_of_session(ended, drawn))
    problems += problems_of_files(folder, before, drawn)
    if not problems:
        problems += _of_the_next(folder, sessions, drawn)
    return problems


# ---- the session ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a session ended: its exit code and its output."""

    code: int | None  # None: it did not end
    output: str


@contextlib.contextmanager
def _harmed(folder: Path, fault: Fault) -> Iterator[None]:
    if fault.prepare:
        fault.prepare(folder)
    try:
        yield
    finally:
        if fault.repair:
            fault.repair(folder)


def _command(drawn: Drawn) -> list[str]:
    python = [sys.executable, "-m"]
    if drawn.mode is Mode.AB:
        asked = [
            "HEAD",
            "test_it.py",
            "-p",
            "opprof",
            "--processes=8",
            "--steps=2",
            "--min-effect=300%",
            "-q",
        ]
        return [*python, "pytest_opprof.cli.main", "ab", *asked]
    asked = ["--opprof-save=main" if drawn.saves else "--opprof-baseline=main"]
    if drawn.mode is Mode.XDIST:
        asked += ["-p", "xdist", "-n", "2"]
    return [*python, "pytest", "-p", "no:faulthandler", *asked]


def _session(folder: Path, sessions: Path, drawn: Drawn) -> Ended:
    fault = drawn.fault
    own = {name: text.format(folder=folder) for name, text in fault.environment.items()}
    more = {"OPPROF_DIR": str(sessions), "CHAOS_INSIDE": fault.inside, **own}
    if drawn.is_changed:
        more[_CHANGED] = "1"
    if drawn.mode is Mode.AB and drawn.is_changed:
        # Both sides have the environment; the head alone has the change.
        del more[_CHANGED]
        path = folder / "work.py"
        path.write_text(path.read_text().replace("(bool(MORE) and number == 1)", "(number == 1)"))
    with (folder / "output").open("w+b") as output:
        process = subprocess.Popen(
            _command(drawn),
            cwd=folder,
            env=environment(more),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=fault.limit,  # noqa: PLW1509 - no thread runs here
            start_new_session=True,
        )
        if fault.signal is not None:
            _disturb(process, drawn)
        try:
            code = process.wait(timeout=drawn.mode.longest_s)
        except subprocess.TimeoutExpired:
            code = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # workers of a killed controller
        process.wait()
        output.seek(0)
        return Ended(code=code, output=output.read().decode("utf-8", "replace"))


def _disturb(process: subprocess.Popen[bytes], drawn: Drawn) -> None:
    """Send the signal at its moment.

    The sleep here is the fault: any moment is right, and no result is awaited.
    """
    assert drawn.fault.signal is not None
    time.sleep(drawn.moment * drawn.mode.signalled_within_s)
    victim = process.pid
    if drawn.fault.to_child:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        with contextlib.suppress(OSError):
            victim = int(next(iter(children.read_text().split()), process.pid))
        if victim == process.pid:
            return  # nothing else runs, so nothing is disturbed
    with contextlib.suppress(ProcessLookupError):
        os.kill(victim, drawn.fault.signal)
        if drawn.fault.signal is signal.SIGSTOP:
            time.sleep(_STOPPED_FOR_S)
            os.kill(victim, signal.SIGCONT)


# ---- checks --------------------------------------------------------------------------------------


def problems_of_session(ended: Ended, drawn: Drawn) -> Iterator[str]:
    """Faults in a session's output."""
    if ended.code is None:
        yield f"hangs: {ended.output[-2000:]}"
        return
    is_judged = not drawn.saves
    if is_judged and drawn.is_changed and ended.code == _PASSED:
        yield f"passes a test that does more: {ended.output[-2000:]}"
    if not drawn.is_changed and "REGRESSED" in ended.output:
        yield f"REGRESSED, and nothing changed: {ended.output[-2000:]}"
    if is_judged and drawn.fault.loses_events and ended.code == _PASSED:
        yield f"passes although events were dropped: {ended.output[-2000:]}"
    if is_judged and drawn.fault.spoils_baseline and ended.code == _PASSED and drawn.mode is not Mode.AB:
        yield f"passes without a baseline that can be read: {ended.output[-2000:]}"
    if (
        "Traceback (most recent call last)" in ended.output
        and "opprof/" in ended.output
        and not drawn.fault.limits
    ):
        yield f"a traceback of ours: {ended.output[-3000:]}"


def stored(folder: Path) -> dict[str, bytes]:
    """The files of the baseline, by name."""
    return {path.name: path.read_bytes() for path in (folder / ".opprof" / "main").glob("*.json*")}


def problems_of_files(folder: Path, before: dict[str, bytes], drawn: Drawn) -> Iterator[str]:
    """Faults in the baselines after a session."""
    if drawn.fault.spoils_baseline:
        return
    after = stored(folder)
    for name, data in before.items():
        if name not in after:
            yield f"{name} is gone"
        elif not drawn.saves and after[name] != data:
            yield f"{name} is another, and nothing was to be saved"
    for path in (folder / ".opprof" / "main").glob("*.json*"):
        try:
            read_run(path)
        except Exception as error:  # noqa: BLE001 - whatever it is, the file is not whole
            yield f"{path.name} cannot be read: {error}"


def _is_alive(session_file: Path) -> bool:
    """Whether a process that a killed A/B left behind still runs."""
    pid = int(session_file.name.split("-")[2])
    return Path(f"/proc/{pid}").exists()


def _of_the_next(folder: Path, sessions: Path, drawn: Drawn) -> Iterator[str]:
    """Faults of an undisturbed session of unchanged code that follows."""
    if drawn.fault.spoils_baseline or (drawn.saves and (drawn.is_changed or drawn.fault.loses_events)):
        return
    project = Project(folder)
    project.write("work.py", _WORK)
    ended = project.pytest("--opprof-baseline=main", env={"OPPROF_DIR": str(sessions)}, writes_run=False)
    if ended.exit_code != _PASSED:
        yield f"the session after it ends with {ended.exit_code}: {ended.stdout[-2000:]}"
    left = sorted(path.name for path in sessions.iterdir() if not _is_alive(path))
    if left:
        yield f"session files are left: {left}"
