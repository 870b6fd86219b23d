"""Tests whose process dies: reports of the next session, of xdist's controller and of `opprof recover`."""

import gzip
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from e2e.project import Project

from pytest_opprof.recovery.sessions import left_sessions
from pytest_opprof.results.samples import Samples

DIES = """\
    import os, signal, threading
    import pytest
    from pytest_opprof import record_function

    def other(inside, done):
        with record_function("loader"):
            with record_function("read"):
                pass
            inside.set()
            done.wait()

    {mark}
    def test_dies(request):
        inside, done = threading.Event(), threading.Event()
        thread = threading.Thread(target=other, args=(inside, done), name="loads", daemon=True)
        thread.start()
        inside.wait()
        with record_function("forward"), record_function("kernel \\x1b[31m"):
            with record_function("finished"):
                pass
            {death}

    def test_lives():
        pass
"""
MARKED = "@pytest.mark.profile(warmup=0, active=1)"
DEATHS = {
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
    "SIGSEGV": "import ctypes; ctypes.string_at(0)",
    "SIGABRT": "os.abort()",
    "exit": "os._exit(7)",
}


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of session files."""
    folder = tmp_path / "sessions"
    folder.mkdir()
    monkeypatch.setenv("OPPROF_DIR", str(folder))
    return folder


def dying(project: Project, *, death: str = "SIGKILL", mark: str = MARKED) -> None:
    project.write("test_it.py", DIES.format(mark=mark, death=DEATHS[death]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "death",
    ["SIGKILL", *(pytest.param(death, marks=pytest.mark.slow) for death in ("SIGSEGV", "SIGABRT", "exit"))],
)
def test_the_next_session_says_what_ran_last(project: Project, sessions: Path, death: str) -> None:
    dying(project, death=death)
    project.pytest("-p", "no:faulthandler")
    assert list(sessions.iterdir())
    dying(project, death=death, mark="@pytest.mark.skip\n    " + MARKED)
    after = project.pytest("-k", "test_dies")
    assert after.exit_code == pytest.ExitCode.OK
    told = "\n".join(after.told)
    assert "test_it.py::test_dies did not end: process " in told
    assert r"main thread: kernel \x1b[31m < forward < ProfilerStep#0 (last inside: finished)" in told
    assert ": loader (last inside: read)" in told
    (trace,) = (project.folder / ".opprof" / "crashes").glob("*.json.gz")
    assert f"trace: {trace.relative_to(project.folder)}" in told
    assert not list(sessions.iterdir())
    assert "did not end" not in project.pytest("-k", "test_dies").stdout


def test_trace_holds_the_recorded_events(project: Project, sessions: Path) -> None:
    dying(project)
    project.pytest()
    done = project.python("-m", "pytest_opprof.cli.main", "recover", str(sessions), "-o", "found")
    (trace,) = (project.folder / "found").iterdir()
    assert str(trace.relative_to(project.folder)) in done.stdout
    names = {event["name"] for event in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]}
    assert {"forward", "finished", "loader", "read"} <= names
    assert list(sessions.iterdir())


def test_recover_removes_the_named_sessions(project: Project, sessions: Path) -> None:
    dying(project)
    project.pytest()
    command = ("-m", "pytest_opprof.cli.main", "recover", str(sessions), "--remove")
    project.python(*command)
    assert not list(sessions.iterdir())
    done = project.python(*command)
    assert done.stdout == "none of your processes died in a test or while recording\n"


RECOVER = ("-m", "pytest_opprof", "recover", "--remove")


def test_recover_leaves_other_projects_alone(project: Project, sessions: Path, tmp_path: Path) -> None:
    dying(project)
    project.pytest()
    other = Project(tmp_path / "other")
    done = other.python(*RECOVER, str(sessions))
    assert done.stdout.splitlines() == [
        "skipped 1 session file from outside this project's tests: --all reads them too",
        "none of your processes died in a test or while recording",
    ]
    assert list(sessions.iterdir())
    assert "test_it.py::test_dies did not end" in other.python(*RECOVER, str(sessions), "--all").stdout
    assert not list(sessions.iterdir())


def test_recover_leaves_recordings_outside_of_tests_alone(project: Project, sessions: Path) -> None:
    records = "import os, signal, pytest_opprof; pytest_opprof.profile().start(); pytest_opprof.record_function('x').__enter__()"
    assert project.python("-c", f"{records}; os.kill(os.getpid(), signal.SIGKILL)").returncode == -9
    told = project.python(*RECOVER, str(sessions)).stdout
    assert told.startswith("skipped 1 session file from outside this project's tests: --all reads them too")
    assert list(sessions.iterdir())
    assert "trace: .opprof/crashes/" in project.python(*RECOVER, str(sessions), "--all").stdout
    assert not list(sessions.iterdir())


@pytest.mark.parametrize(
    ("answer", "is_taken"),
    [("y\n", True), ("\n", False), ("\x04", False)],
    ids=["yes", "no", "end of input"],
)
def test_recover_asks_on_a_terminal(
    project: Project, sessions: Path, tmp_path: Path, answer: str, is_taken: bool
) -> None:
    dying(project)
    project.pytest()
    shown = Project(tmp_path / "other").on_a_terminal(*RECOVER, str(sessions), types=answer)
    assert "Read 1 session file from outside this project's tests too? [y/N]" in shown
    assert ("reading 1 of 1" in shown, "test_dies did not end" in shown) == (is_taken, is_taken)
    assert bool(list(sessions.iterdir())) is not is_taken
    assert "Traceback" not in shown


def test_recover_asks_where_the_user_sees_it(project: Project, sessions: Path, tmp_path: Path) -> None:
    dying(project)
    project.pytest()
    code = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]], stdout=open('told', 'w'))"
    other = Project(tmp_path / "other")
    shown = other.on_a_terminal("-c", code, *RECOVER, str(sessions), types="y\n")
    assert "Read 1 session file from outside this project's tests too? [y/N]" in shown
    told = (other.folder / "told").read_text()
    assert told.startswith("test_it.py::test_dies did not end")


@pytest.mark.slow
def test_controller_reports_a_death_at_once(project: Project, sessions: Path) -> None:
    dying(project)
    session = project.pytest("-n", "1", "--max-worker-restart=1", plugins=("xdist",))
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert "test_it.py::test_dies did not end: gw0, process " in "\n".join(session.told)
    assert not [file for file in left_sessions([sessions]) if file.note]


@pytest.mark.slow
def test_ab_reports_dead_processes(project: Project, sessions: Path) -> None:
    project.write("test_it.py", DIES.format(mark=MARKED, death="pass"))
    project.write(".gitignore", ".opprof/")
    project.git("init", "-q", "-b", "main")
    project.commit()
    dying(project)
    done = project.python(
        *("-m", "pytest_opprof.cli.main", "ab", "main", "-k", "test_dies", "-p", "opprof", "--processes=8")
    )
    assert done.returncode == 9
    assert "cannot be run on the base: killed by SIGKILL" in done.stderr
    assert r"main thread: kernel \x1b[31m < forward < ProfilerStep#0" in done.stderr
    assert not list(sessions.iterdir())


def test_always_mode_records_unmarked_tests(project: Project, sessions: Path) -> None:
    dying(project, mark="")
    project.pytest("--opprof=always")
    after = project.pytest("--opprof=always", "-k", "test_lives")
    assert after.exit_code == pytest.ExitCode.OK
    told = "\n".join(after.told)
    assert "test_it.py::test_dies did not end" in told
    assert "< forward (last inside: finished)" in told


def test_unmarked_tests_are_not_recorded_by_default(project: Project, sessions: Path) -> None:
    dying(project, mark="")
    project.pytest()
    assert not [file for file in left_sessions([sessions]) if file.note or file.was_recording]


def test_always_mode_yields_to_a_tests_own_profile(project: Project, sessions: Path) -> None:
    project.write(
        "test_it.py",
        """\
        import pytest
        from pytest_opprof import profile, record_function

        def test_profiles():
            with record_function("before"):
                pass
            with profile() as prof:
                with record_function("inside"):
                    pass
            assert [row.key for row in prof.key_averages()] == ["inside"]

        @pytest.mark.profile(wait=1, warmup=1, active=2)
        def test_marked():
            with record_function("work"):
                pass
        """,
    )
    session = project.pytest("--opprof=always")
    assert session.exit_code == pytest.ExitCode.OK
    (row,) = [op for op in session.result("test_marked").ops if op.name == "work"]
    assert row.count == Samples.constant(1, steps=2)
    assert not list(sessions.iterdir())


def test_other_projects_and_living_processes_are_left_alone(
    project: Project, sessions: Path, tmp_path: Path
) -> None:
    dying(project)
    project.pytest()
    living = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from pytest_opprof import profile\nwith profile():\n print(flush=True)\n input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert living.stdout is not None
    living.stdout.readline()
    before = set(sessions.iterdir())
    other = Project(tmp_path / "other")
    dying(other, mark="@pytest.mark.skip\n    " + MARKED)
    assert "did not end" not in other.pytest().stdout
    assert set(sessions.iterdir()) == before
    living.communicate(b"\n")
    assert living.returncode == 0


def test_sessions_without_information_are_removed(project: Project, sessions: Path) -> None:
    program = "import os, pytest_opprof.capture.collector as c; c.Collector.instance().open(); os._exit(0)"
    subprocess.run([sys.executable, "-c", program], check=True)
    assert list(sessions.iterdir())
    dying(project, mark="@pytest.mark.skip\n    " + MARKED)
    project.pytest()
    assert not list(sessions.iterdir())


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_loses_nothing(project: Project, sessions: Path) -> None:
    (project.folder / ".opprof").write_text("a file where the folder should be")
    dying(project)
    project.pytest()
    after = project.pytest("-k", "test_lives")
    assert "opprof recover tries again" in "\n".join(after.told)
    assert list(sessions.iterdir())


@pytest.mark.slow
def test_without_a_session_file_the_header_says_so(project: Project) -> None:
    """A file size limit prevents a session file: the recording is in memory that dies with its process."""
    quota = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))\n"
    project.write("test_it.py", "import pytest\n@pytest.mark.profile\ndef test_it(): pass\n")
    told = "opprof: no writable session folder: no crash recovery"
    assert told not in project.pytest().told
    project.write("conftest.py", quota)
    session = project.pytest()
    assert told in session.told
    assert not session.result("test_it").capture.crash_recovery


def test_signal_handlers_are_left_alone(project: Project, sessions: Path) -> None:
    assert signal.getsignal(signal.SIGSEGV) == signal.SIG_DFL
    project.write(
        "test_it.py",
        """\
        import signal
        import pytest

        @pytest.mark.profile
        def test_handlers():
            for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM):
                assert signal.getsignal(number) is signal.SIG_DFL
        """,
    )
    assert project.pytest("-p", "no:faulthandler", "--opprof=always").exit_code == pytest.ExitCode.OK
