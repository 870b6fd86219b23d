"""Real processes of an experiment that do not end."""

import os
import sys
from pathlib import Path

import pytest

from pytest_opprof.errors import UsageError
from pytest_opprof.experiment import session

# Reports that it waits, so that a later signal ends it.
WAITS = "print('waiting', flush=True); signal.pause()"
DEAF = "[signal.signal(each, signal.SIG_IGN) for each in ({})]; "


def ended(text: str, folder: Path, *, timeout: float | None = None) -> session.Ended:
    command = [sys.executable, "-c", f"import signal, subprocess, sys; {text}"]
    return session.run(command, folder=folder, environment=os.environ, timeout=timeout)


@pytest.mark.slow
def test_hanging_process_is_interrupted_and_shows_where(tmp_path: Path) -> None:
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
def test_process_deaf_to_interrupts_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deaf_to: str, killed_by: str
) -> None:
    monkeypatch.setattr(session, "_PATIENCE_S", 0.2)
    done = ended(DEAF.format(deaf_to) + WAITS, tmp_path, timeout=5)
    assert (done.late, done.tail) == (5, "waiting")
    assert session.Ended(code=done.code, pid=done.pid, output="").ending == f"killed by {killed_by}"


@pytest.mark.slow
def test_children_of_a_hanging_process_are_ended(tmp_path: Path) -> None:
    child = f"import signal; {DEAF.format('signal.SIGINT,')}{WAITS}"
    pid = "print(process.pid, flush=True); "
    text = f"process = subprocess.Popen([sys.executable, '-c', {child!r}]); {pid}signal.pause()"
    done = ended(text, tmp_path, timeout=5)
    (number,) = (line for line in done.tail.splitlines() if line.isdigit())
    assert done.late == 5
    assert not Path("/proc", number, "exe").exists(), "what is dead has no program any more"


def test_process_that_ends_in_time_is_not_late(tmp_path: Path) -> None:
    done = ended("sys.exit(3)", tmp_path, timeout=300)
    assert (done.late, done.ending, done.tail) == (None, "exit code 3", "it printed nothing")


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_invalid_timeout_is_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match=r"--timeout=.*: it must be a number of seconds above 0"):
        session.check_timeout(seconds)


@pytest.mark.slow
def test_second_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    """The second interrupt comes while a deaf process is given time to end on its own."""
    deaf = f"import signal; {DEAF.format('signal.SIGINT, signal.SIGTERM')}print(os.getpid(), flush=True); "
    deaf = deaf.replace("import signal", "import os, signal") + "open('deaf', 'w').close(); signal.pause()"
    impatient = f"""if True:
        import os, signal, sys, threading, time
        from pathlib import Path
        from pytest_opprof import children
        from pytest_opprof.experiment import session

        def interrupts():
            while not Path("deaf").exists():
                time.sleep(0.01)
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.5)

        threading.Thread(target=interrupts, daemon=True).start()
        started = children.Popen
        def noted(*args, **kwargs):
            process = started(*args, **kwargs)
            Path("pid").write_text(str(process.pid))
            return process
        children.Popen = noted
        session.run([sys.executable, "-c", {deaf!r}], folder=Path.cwd(), environment=os.environ)
    """
    done = ended(f"exec({impatient!r})", tmp_path, timeout=60)
    assert done.late is None
    assert done.tail.endswith("KeyboardInterrupt")
    assert not Path("/proc", (tmp_path / "pid").read_text(), "exe").exists()


@pytest.mark.parametrize(
    ("path", "is_installed"),
    [
        ("/usr/lib/python3.11/json/decoder.py", True),
        ("/usr/lib/python3/dist-packages/work.py", True),
        ("/project/.venv/lib/python3.11/site-packages/work.py", True),
        ("/usr/src/app/work.py", False),
    ],
)
def test_project_may_lie_under_the_interpreters_prefix(path: str, *, is_installed: bool) -> None:
    listing = session.Listing(
        root=Path("/usr/src/app"),
        arguments=(),
        options=(),
        sys_path=(),
        stdlib="/usr/lib/python3.11",
        modules={},
        copies={},
        gates=(),
        ini_gates=(),
        tests=(),
    )
    assert listing.is_installed(Path(path)) is is_installed
