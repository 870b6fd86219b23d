"""Tests ended by the kernel for lack of memory, by a timeout, or by a program that replaces the process."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.project import Project, environment

from pytest_opprof.results.files import read_run
from pytest_opprof.results.run import MeasurementStatus

ENDS = """\
    import os, threading
    import pytest
    from pytest_opprof import record_function

    @pytest.mark.profile(warmup=0, active=1)
    def test_ends():
        with record_function("forward"):
            {end}

    def test_lives():
        pass
"""


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of session files."""
    folder = tmp_path / "sessions"
    folder.mkdir()
    monkeypatch.setenv("OPPROF_DIR", str(folder))
    return folder


def check_the_next_session_tells(project: Project, sessions: Path) -> None:
    after = project.pytest("-k", "test_lives")
    assert after.exit_code == pytest.ExitCode.OK
    told = "\n".join(after.told)
    assert "test_it.py::test_ends did not end: process " in told
    assert "main thread: forward < ProfilerStep#0" in told
    assert not list(sessions.iterdir())


@pytest.fixture
def memory_group() -> Iterator[Path]:
    """A kernel control group with memory for an idle pytest and little more."""
    mounted = Path("/sys/fs/cgroup/memory")
    group = (mounted if mounted.is_dir() else Path("/sys/fs/cgroup")) / f"opprof-tests-{os.getpid()}"
    limit = group / ("memory.limit_in_bytes" if mounted.is_dir() else "memory.max")
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        if not limit.exists():
            pytest.skip(f"the control groups of {group.parent} have no limit of memory")
        limit.write_text(str(256 << 20))
        yield group / "cgroup.procs"
    finally:
        group.rmdir()


@pytest.mark.slow
def test_out_of_memory_kill_is_reported(project: Project, sessions: Path, memory_group: Path) -> None:
    project.write("test_it.py", ENDS.format(end="kept = [bytes(1 << 20) + b'1' for _ in range(1_000)]"))
    enters = f'echo $$ > {memory_group} && exec "$0" -m pytest -k test_ends'
    done = subprocess.run(
        ["/bin/sh", "-c", enters, sys.executable],
        cwd=project.folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == -9, done.stdout + done.stderr
    check_the_next_session_tells(project, sessions)


@pytest.mark.slow
def test_timeout_that_ends_the_process_is_reported(project: Project, sessions: Path) -> None:
    """pytest-timeout's other method, which only fails the test, is in test_terms.py."""
    pytest.importorskip("pytest_timeout")
    project.write("test_it.py", ENDS.format(end="threading.Event().wait()"))
    session = project.pytest(
        "-k", "test_ends", "--timeout=1", "--timeout-method=thread", plugins=("timeout",)
    )
    assert session.exit_code == 1
    assert "Timeout" in session.stdout + session.stderr
    check_the_next_session_tells(project, sessions)


@pytest.mark.slow
def test_exec_in_a_test_is_reported(project: Project, sessions: Path) -> None:
    project.write("test_it.py", ENDS.format(end="os.execv('/bin/true', ['true'])"))
    session = project.pytest("-k", "test_ends")
    assert session.exit_code == 0
    assert not session.junit.exists()
    check_the_next_session_tells(project, sessions)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["plain", "xdist"])
def test_pytest_exit_is_not_a_death(project: Project, sessions: Path, workers: tuple[str, ...]) -> None:
    project.write("test_it.py", ENDS.format(end="pytest.exit('enough')"))
    project.pytest(*workers, plugins=("xdist",) if workers else ())
    assert "did not end" not in project.pytest("-k", "test_lives").stdout
    assert not list(sessions.iterdir())


@pytest.mark.slow
def test_timed_out_second_look_is_not_a_death(project: Project, sessions: Path) -> None:
    """A process that this session killed did not die in a test."""
    project.write(
        "conftest.py",
        """\
        import os
        from pytest_opprof.plugin import certify

        certify._ALL_LOOKS_S = 3.0
        os.environ.setdefault("FIRST", str(os.getpid()))
        """,
    )
    project.write("test_it.py", ENDS.format(end="pass"))
    assert project.pytest("--opprof-save=main").exit_code == 0
    edited = 'pass\n        with record_function("forward"):\n            pass\n'
    waits = '        if os.environ["FIRST"] != str(os.getpid()):\n            threading.Event().wait()'
    project.write("test_it.py", ENDS.format(end=edited + waits))
    session = project.pytest("--opprof-baseline=main")
    assert session.exit_code == 1
    assert "forward +1" in session.stdout
    assert not list(sessions.iterdir())


# ---- the folder of the session's file --------------------------------------------------------

RECORDS = """\
    import os, shutil
    import pytest
    from pytest_opprof import record_function

    @pytest.mark.profile
    def test_records():
        {before}
        for _ in range(3):
            with record_function("work"):
                pass
"""


@pytest.mark.slow
def test_a_session_folder_that_vanishes_costs_nothing(project: Project, sessions: Path) -> None:
    project.write(
        "test_it.py",
        RECORDS.format(before="shutil.rmtree(os.environ['OPPROF_DIR'], ignore_errors=True)"),
    )
    session = project.pytest("--opprof-save=main")
    assert session.exit_code == pytest.ExitCode.OK
    assert session.result("test_records").measurement.reason == ""
    assert not session.result("test_records").capture.dropped
    assert not sessions.exists()
    assert project.pytest("--opprof-baseline=main").exit_code == pytest.ExitCode.OK


@pytest.fixture
def unwritable(tmp_path: Path) -> Iterator[Path]:
    """A folder that nobody can write to, not even root."""
    folder = tmp_path / "unwritable"
    folder.mkdir(mode=0o500)
    if os.getuid() != 0:
        yield folder
        return
    command = ["mount", "-t", "tmpfs", "-o", "ro,size=4k", "none", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("root can write everywhere here, and mount nothing")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_session_folder_that_is_read_only_is_passed_over(project: Project, unwritable: Path) -> None:
    project.write("test_it.py", RECORDS.format(before="pass"))
    session = project.pytest(env={"OPPROF_DIR": str(unwritable)})
    assert session.exit_code == pytest.ExitCode.OK
    test = session.result("test_records")
    assert (test.measurement.reason, test.capture.dropped, test.capture.crash_recovery) == ("", 0, True)


def pytest_without_shared_memory(
    project: Project, *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run pytest without shared memory: a file size limit leaves no room for the session's file."""
    command = ["/bin/sh", "-c", 'ulimit -f 2048 && exec "$0" -m pytest "$@"', sys.executable, *arguments]
    return subprocess.run(
        [*command, "--opprof-json=run.json"],
        cwd=project.folder,
        env=environment(env),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_recording_without_any_folder_says_what_is_lost(project: Project, unwritable: Path) -> None:
    project.write("test_it.py", RECORDS.format(before="pass"))
    session = pytest_without_shared_memory(project, env={"OPPROF_DIR": str(unwritable)})
    assert session.returncode == 0, session.stdout + session.stderr
    assert "no writable session folder: no crash recovery" in session.stdout


# A container whose whole file system is read-only: Python finds no folder for temporary files.
NOWHERE = """\
    import tempfile

    def nowhere():
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp', '/var/tmp']")

    tempfile._get_default_tempdir = nowhere
    tempfile.tempdir = None
"""


@pytest.mark.slow
@pytest.mark.parametrize("option", ["", "--opprof-save=main", "--opprof-baseline=main"])
def test_recording_without_a_temporary_folder_says_what_is_lost(project: Project, option: str) -> None:
    project.write("test_it.py", RECORDS.format(before="pass"))
    project.write("nowhere.py", NOWHERE)
    if "baseline" in option:
        project.pytest("--opprof-save=main")
    session = pytest_without_shared_memory(project, "-p", "nowhere", "--capture=sys", *filter(None, [option]))
    assert session.returncode == 0, session.stdout + session.stderr
    assert "no writable session folder: no crash recovery" in session.stdout
    (test,) = read_run(project.folder / "run.json").tests
    assert (test.measurement.status, test.steps > 0) == (MeasurementStatus.OK, True)


def test_workers_without_a_temporary_folder_are_refused(project: Project) -> None:
    pytest.importorskip("xdist")
    project.write("test_it.py", RECORDS.format(before="pass"))
    project.write("nowhere.py", NOWHERE)
    session = project.pytest(
        "-p", "nowhere", "-n", "1", "--capture=sys", "--opprof-save=main", plugins=("xdist",)
    )
    assert session.exit_code == pytest.ExitCode.USAGE_ERROR
    assert "opprof: workers share a temporary folder: [Errno 2] No usable temporary" in session.stderr
