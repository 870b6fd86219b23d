"""Systems without native modules: tests run unmeasured, the session says so, and saved runs can be read."""

import importlib
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from e2e.conftest import MakeProject
from e2e.project import WORK_TWICE, Project, Session, environment

from pytest_opprof.cli.main import RECORDING

TESTS = Path(__file__).parents[1]
SYSTEMS = {"darwin": "macOS", "win32": "Windows"}
COMMANDS = [
    ("show", "base.json"),
    ("validate", "base.json", "comparison.json", ".opprof/accepted.json"),
    ("compare", "base.json", "head.json"),
    ("compare", "main", "head.json", "-o", "made/comparison.json"),
    *(("report", "comparison.json", f"--format={kind}") for kind in ("markdown", "junit", "annotations")),
    ("report", "--base", "base.json", "--head", "head.json", "-o", "made/report.html"),
    ("accept", "test_it.py::test_it", "--reason", "wanted", "--comparison", "comparison.json"),
    ("baseline", "list"),
    ("baseline", "save", "other", "head.json"),
    ("baseline", "push", "main", "--to", "counts:made/counts"),
    ("baseline", "remove", "main"),
    ("history", "test_it"),
    ("history", "--compact"),
    ("merge", "base.json", "-o", "made/merged.json"),
    ("comment", "comparison.json", "--dry-run", "--forge", "github"),
    ("init",),
]
ALSO = [("doctor",), ("--help",)]
# Each as its help's example calls it.
RECORDING_COMMANDS = [
    tuple(shlex.split(importlib.import_module(f"pytest_opprof.cli.{name.replace('-', '_')}").EXAMPLE)[1:])
    for name in sorted(RECORDING)
]


def session(project: Project, system: str, *arguments: str, plugins: tuple[str, ...] = ()) -> Session:
    project.write(
        "pretended.py", f"from support.programs import elsewhere\n\nelsewhere.pretend({system!r})\n"
    )
    path = os.pathsep.join([str(TESTS), str(project.folder), os.environ["PYTHONPATH"]])
    return project.pytest(
        *arguments, plugins=("pretended", *plugins), env={"PYTHONPATH": path}, writes_run=False
    )


# Runs commands one after the other, each in a copy of a project, and prints their results.
RUNNER = """
import contextlib, io, json, os, shutil, sys
from pathlib import Path
from pytest_opprof.cli.main import main

def names(folder):
    paths = {path.relative_to(folder) for path in folder.rglob("*") if ".git" not in path.parts}
    # A segment of the history has a name of its own.
    return sorted({str(path.parent if path.suffix == ".jsonl" else path) for path in paths})

project, made = map(Path, sys.argv[1:3])
told = []
for number, command in enumerate(json.loads(sys.argv[3])):
    folder = made / str(number) / "project"
    shutil.copytree(project, folder)
    (folder / "made").mkdir()
    os.chdir(folder)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(command)
        except SystemExit as end:
            code = end.code
    told.append([code, out.getvalue(), err.getvalue(), names(folder)])
print(json.dumps(told))
"""
# Each command's exit code, output and resulting files.
Told = dict[tuple[str, ...], tuple[int, str, str, list[str]]]


def told_by(project: Project, made: Path, *, system: str | None) -> Told:
    pretend = f"from support.programs import elsewhere; elsewhere.pretend({system!r})\n" if system else ""
    commands = [*COMMANDS, *RECORDING_COMMANDS, *ALSO] if system else [*COMMANDS, *ALSO]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", pretend + RUNNER, project.folder, made, json.dumps(commands)],
        env=environment({"PYTHONPATH": os.pathsep.join([str(TESTS), os.environ["PYTHONPATH"]])}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    return {command: tuple(one) for command, one in zip(commands, found, strict=True)}


def reason(system: str) -> str:
    return f"pytest-opprof records only on Linux, and this is {SYSTEMS[system]}"


@pytest.fixture(scope="module", params=SYSTEMS)
def system(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def measured(make_project: MakeProject) -> Project:
    """A project that was measured here: a baseline, and a run that does more."""
    project = make_project("measured")
    project.write("test_it.py", WORK_TWICE)
    project.git("init", "-q", "-b", "main")
    assert project.pytest("--opprof-save=main", "--opprof-json=base.json").exit_code == 0
    project.replace("test_it.py", "range(2)", "range(3)")
    regressed = project.pytest(
        "--opprof-baseline=main", "--opprof-json=head.json", "--opprof-report=json:comparison.json"
    )
    assert regressed.exit_code == 1
    accept = ("-m", "pytest_opprof.cli.main", "accept", "test_it.py::test_it", "--reason", "why")
    assert project.python(*accept).returncode == 0
    return project


@pytest.mark.slow
def test_marked_tests_run_as_plain_tests(project: Project, system: str) -> None:
    project.write(
        "test_it.py",
        """\
        import pytest
        from pytest_opprof import range_pop, range_push, record_function

        calls = []

        @pytest.mark.profile(warmup=1, active=3, limits=[{"ops.count": 0}])
        def test_once():
            calls.append(1)
            range_push("pushed")
            with record_function("work"):
                assert len(calls) == 1
            range_pop()

        @pytest.mark.profile
        def test_steps(opprof):
            for _ in range(4):
                with opprof.record_function("work"):
                    pass
                opprof.step()

        @pytest.mark.profile
        def test_looks_at_counts(opprof):
            opprof.step()
            assert opprof.counts["aten::item"] == 0, "it would pass by chance"

        def test_without_marker(opprof):
            assert opprof.counts["work"] == len(opprof.key_averages()) == 0

        @pytest.mark.profile
        def test_fails():
            assert not calls
        """,
    )
    done = session(project, system)
    assert done.exit_code == 1
    assert done.outcomes == {
        "test_once": "passed",
        "test_steps": "passed",
        "test_looks_at_counts": "skipped",
        "test_without_marker": "passed",
        "test_fails": "failure",
    }
    assert done.told == [
        f"opprof: nothing can be measured here: {reason(system)} (marked tests run as plain tests, and "
        "commands on saved runs work)",
        f"opprof: not measured: {reason(system)}",
    ]


ASKED = (
    *("--opprof-baseline=main", "--opprof-save=next", "--opprof-json=run.json"),
    "--opprof-report=markdown:report.md",
)
UNDONE = (
    "nothing was compared with main; nothing was saved as next; run.json was not written; "
    "report.md was not written"
)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "workers"])
def test_skipped_requests_are_reported(project: Project, workers: tuple[str, ...]) -> None:
    project.write("test_it.py", WORK_TWICE)
    plugins = ("xdist",) if workers else ()
    done = session(project, "darwin", *ASKED, *workers, plugins=plugins)
    assert done.exit_code == 0
    assert done.told[-1] == f"opprof: not measured: {reason('darwin')}; {UNDONE}"
    assert len(done.told) == 2
    assert not (project.folder / ".opprof").exists()
    assert not (project.folder / "run.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "workers"])
def test_fail_on_unmeasured_fails_the_session(project: Project, workers: tuple[str, ...]) -> None:
    project.write("test_it.py", WORK_TWICE)
    plugins = ("xdist",) if workers else ()
    done = session(project, "darwin", "--opprof-fail-on=regressed,unmeasured", *workers, plugins=plugins)
    assert done.exit_code == 1
    assert done.told[-1] == f"opprof: not measured: {reason('darwin')}; --opprof-fail-on makes this fail"
    assert done.outcomes == {"test_it": "passed"}


def test_mistakes_are_refused_as_everywhere(project: Project) -> None:
    project.write("test_it.py", "import pytest\n\n@pytest.mark.profile(warmpu=1)\ndef test_it():\n    pass\n")
    done = session(project, "darwin")
    assert done.exit_code == pytest.ExitCode.USAGE_ERROR
    assert "did you mean 'warmup'?" in done.told[-1]
    project.write("test_it.py", WORK_TWICE)
    done = session(project, "darwin", "--opprof-fail-on=regresed")
    assert done.exit_code == pytest.ExitCode.USAGE_ERROR
    assert "did you mean 'regressed'?" in done.told[-1]


@pytest.mark.slow
def test_a_broken_installation_skips_no_gate(project: Project) -> None:
    project.write("test_it.py", WORK_TWICE)
    project.write("broken.py", "from support.programs import elsewhere\n\nelsewhere.without_native()\n")
    path = os.pathsep.join([str(TESTS), str(project.folder), os.environ["PYTHONPATH"]])
    for arguments, code in (((), 0), (("--opprof-baseline=main",), pytest.ExitCode.USAGE_ERROR)):
        done = project.pytest(*arguments, plugins=("broken",), env={"PYTHONPATH": path}, writes_run=False)
        assert done.exit_code == code
        assert "the native modules of pytest-opprof are missing: install it again" in done.told[0]


@pytest.mark.slow
def test_sessions_without_marked_tests_say_nothing(project: Project, system: str) -> None:
    project.write("test_it.py", "def test_it():\n    pass\n")
    done = session(project, system)
    assert (done.exit_code, done.told) == (0, [])
    done = session(project, system, "--opprof-capture=itt,nvtx")
    assert (done.exit_code, done.told) == (0, [])


@pytest.fixture(scope="module")
def here(measured: Project, tmp_path_factory: pytest.TempPathFactory) -> Told:
    return told_by(measured, tmp_path_factory.mktemp("here"), system=None)


@pytest.fixture(scope="module")
def there(measured: Project, system: str, tmp_path_factory: pytest.TempPathFactory) -> Told:
    return told_by(measured, tmp_path_factory.mktemp(system), system=system)


@pytest.mark.parametrize("command", [*COMMANDS, ("--help",)], ids=lambda command: " ".join(command)[:40])
def test_commands_on_saved_runs_work_as_on_linux(command: tuple[str, ...], here: Told, there: Told) -> None:
    assert there[command] == here[command]
    assert here[command][0] in {0, 1}


@pytest.mark.slow
@pytest.mark.parametrize("command", RECORDING_COMMANDS, ids=lambda command: command[0])
def test_recording_commands_are_refused_in_one_sentence(
    command: tuple[str, ...], there: Told, system: str
) -> None:
    code, out, err, _ = there[command]
    assert (code, out) == (3, "")
    assert err == (
        f"opprof: nothing can be measured here: {reason(system)} (marked tests run as plain tests, and "
        "commands on saved runs work)\n"
    )


def test_doctor_says_why(there: Told, system: str) -> None:
    code, out, err, _ = there["doctor",]
    assert (code, err) == (1, "")
    first, second = out.splitlines()
    assert first.split(maxsplit=2)[:2] == ["collector", "absent"]
    assert reason(system) in first
    assert second.startswith("store")
