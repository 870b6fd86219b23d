"""Under pytest-xdist every worker measures and judges, and the controller joins the results."""

import signal

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project, Session

from pytest_opprof.results.files import read_run

pytest.importorskip("xdist")

XDIST = ("xdist",)
TESTS = """\
    import pytest
    from pytest_opprof import record_function

    def work(times):
        for _ in range(times):
            with record_function("work"):
                pass

    @pytest.mark.profile
    @pytest.mark.parametrize("times", [1, 2, 3])
    @pytest.mark.xdist_group("together")
    def test_same(times):
        work(times)

    @pytest.mark.profile
    def test_more():
        work(1)

    @pytest.mark.profile(limits={"work.count": "<= 1"})
    def test_limit():
        work(1)

    @pytest.mark.profile
    def test_removed():
        work(1)

    def test_plain():
        pass
"""


@pytest.fixture(scope="module")
def distributed(make_project: MakeProject) -> tuple[Project, Session]:
    """A project that two workers saved, and that has changed since."""
    project = make_project("distributed")
    project.write("test_one.py", TESTS)
    project.write("test_two.py", TESTS.replace("def test_", "def test_two_"))
    saved = project.pytest("-n", "2", "--dist=loadgroup", "--opprof-save=main", plugins=XDIST)
    for old, new in (
        ("def test_more():\n    work(1)", "def test_more():\n    work(2)"),
        ("def test_limit():\n    work(1)", "def test_limit():\n    work(3)"),
        ("def test_removed", "def test_added"),
    ):
        project.replace("test_one.py", old, new)
    return project, saved


@pytest.mark.slow
def test_save_joins_the_workers_measurements(distributed: tuple[Project, Session]) -> None:
    project, saved = distributed
    assert saved.exit_code == 0
    (path,) = project.stored()
    run = read_run(path)
    names = ("same[1]", "same[2]", "same[3]", "more", "limit", "removed")
    assert {test.node_id for test in run.tests} == {
        *(f"test_one.py::test_{name}" for name in names),
        *(f"test_two.py::test_two_{name}" for name in names),
    }
    assert {test.processes for test in run.tests} == {2}
    assert run.environment.fingerprint["python"]
    assert not any("not certified" in line for line in saved.told)
    saved.lines.fnmatch_lines(["opprof *: * store dir:.opprof", "2 passed, 10 measured * nothing dropped"])


MANY = """\
    import os
    import pytest

    @pytest.mark.profile
    @pytest.mark.parametrize("number", range(16))
    def test_it(number, request):
        with open(f"{request.node.path}.{os.environ.get('PYTEST_XDIST_WORKER', 'fresh')}", "a") as file:
            print(os.getpid(), file=file)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("dist", "expected"), [("load", 2), ("loadgroup", 1)])
def test_as_many_fresh_processes_confirm_as_there_are_workers(
    make_project: MakeProject, dist: str, expected: int
) -> None:
    project = make_project(f"confirmed-{dist}")
    project.write("test_one.py", MANY)
    project.write("test_two.py", MANY)
    saved = project.pytest("-n", "2", f"--dist={dist}", "--opprof-save=main", plugins=XDIST)
    assert not any("not certified" in line for line in saved.told)
    (path,) = project.stored()
    assert [test.processes for test in read_run(path).tests] == [2] * 32
    pids = [
        {*(project.folder / f"{name}.fresh").read_text().split()} for name in ("test_one.py", "test_two.py")
    ]
    assert [len(of_file) for of_file in pids] == [1, 1]
    assert len(set[str]().union(*pids)) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode",
    # The other modes distribute whole files, which may happen anyway.
    [
        "load",
        "loadgroup",
        "worksteal",
        *(pytest.param(mode, marks=pytest.mark.slow) for mode in ("loadscope", "loadfile")),
    ],
)
def test_every_way_to_distribute_gives_the_same_verdicts(
    distributed: tuple[Project, Session], mode: str
) -> None:
    project, _ = distributed
    session = project.pytest("-n", "2", f"--dist={mode}", "--opprof-baseline=main", plugins=XDIST)
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    failed = {name for name, outcome in session.outcomes.items() if outcome != "passed"}
    assert {name.partition("@")[0] for name in failed} == {"test_more", "test_limit"}
    assert len(session.run.tests) == 12
    missing = "test_one.py::test_removed: its file was collected without it"
    assert [line.startswith(f"opprof: {missing}") for line in session.told] == [False, True]
    session.lines.fnmatch_lines(
        [
            "opprof * baseline main (latest, *) * store dir:.opprof",
            "opprof: using the latest run named 'main': this is not a git repository",
            "*2 regressed, 1 missing, 1 new, 9 passed * nothing dropped*",
        ]
    )
    assert session.stdout.count("= opprof =") == 1


def test_failures_of_workers_name_the_op(distributed: tuple[Project, Session]) -> None:
    project, _ = distributed
    session = project.pytest("-n", "2", "--opprof-baseline=main", "-k", "more", plugins=XDIST)
    assert "REGRESSED: 1 more range in each step than main" in session.failures["test_more"]
    # Both files were collected whole, so missing tests are known to be gone.
    assert any("test_removed" in line for line in session.told)


@pytest.mark.slow
def test_files_are_recognized_from_a_subfolder(distributed: tuple[Project, Session]) -> None:
    project, _ = distributed
    (project.folder / "below").mkdir(exist_ok=True)
    session = project.pytest(
        "-n", "2", "--opprof-baseline=main", "../test_two.py", plugins=XDIST, cwd="below"
    )
    assert session.exit_code == 0
    session.lines.fnmatch_lines(["6 passed * nothing dropped * 6 other tests not run"])


@pytest.mark.slow
def test_a_crashing_worker_loses_only_its_own_test(project: Project) -> None:
    project.write(
        "test_it.py",
        """\
        import os
        import pytest
        from pytest_opprof import record_function

        @pytest.mark.profile
        @pytest.mark.parametrize("number", range(6))
        def test_it(number):
            with record_function("work"):
                if number == 2:
                    os._exit(9)
        """,
    )
    session = project.pytest("-n", "2", "--opprof-save=main", plugins=XDIST)
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    measured = {test.node_id for test in session.run.tests if test.steps == 3}
    assert measured == {f"test_it.py::test_it[{number}]" for number in range(6) if number != 2}
    (path,) = project.stored()
    assert {test.node_id for test in read_run(path).tests} == measured
    assert "worker 'gw" in session.stdout


@pytest.mark.slow
def test_refused_marker_is_one_usage_error(project: Project) -> None:
    project.write("test_it.py", "import pytest\n@pytest.mark.profile(warmpu=1)\ndef test_it(): pass\n")
    session = project.pytest("-n", "2", plugins=XDIST, writes_run=False)
    assert session.exit_code == pytest.ExitCode.USAGE_ERROR
    assert session.told == [
        "ERROR: opprof: @pytest.mark.profile of test_it.py::test_it: unknown argument 'warmpu' "
        "(did you mean 'warmup'?)"
    ]
    assert "INTERNALERROR" not in session.stdout


@pytest.mark.slow
def test_missing_baseline_is_reported_once(project: Project) -> None:
    project.write("test_it.py", TESTS)
    session = project.pytest("-n", "2", "--opprof-baseline=main", plugins=XDIST)
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert set(session.outcomes.values()) == {"passed"}
    assert set(session.told) == {
        "opprof: no baseline 'main' in dir:.opprof (it is empty). "
        "Record one on that branch: pytest --opprof-save=main"
    }


def test_a_bad_baseline_stops_before_the_workers_start(project: Project) -> None:
    project.write("test_it.py", TESTS)
    project.write(".opprof/main/1.json", "{}")
    session = project.pytest("-n", "2", "--opprof-baseline=main", plugins=XDIST)
    assert session.exit_code == pytest.ExitCode.USAGE_ERROR
    (line,) = session.told
    assert "1.json" in line
    assert (project.folder / ".opprof/main/1.json").read_text() == "{}"
    assert "test session starts" in session.stdout
    assert "test_it.py" not in session.stdout


@pytest.mark.slow
def test_the_first_failure_may_stop_the_session(project: Project) -> None:
    project.write("test_it.py", TESTS)
    project.pytest("--opprof-save=main", plugins=XDIST)
    project.replace("test_it.py", "def test_more():\n    work(1)", "def test_more():\n    work(2)")
    session = project.pytest("-n", "2", "-x", "--opprof-baseline=main", plugins=XDIST)
    assert session.exit_code in {pytest.ExitCode.INTERRUPTED, pytest.ExitCode.TESTS_FAILED}
    assert session.outcomes["test_more"] == "failure"
    session.lines.fnmatch_lines(["1 regressed*"])


@pytest.mark.slow
def test_workers_judge_limits_without_options(project: Project) -> None:
    project.write(
        "test_it.py",
        TESTS.replace("def test_limit():\n        work(1)", "def test_limit():\n        work(2)"),
    )
    session = project.pytest("-n", "2", plugins=XDIST, writes_run=False)
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert "work.count is 2 in each step, but the limit is <= 1" in session.failures["test_limit"]
    session.lines.fnmatch_lines(["*= opprof =*", "*1 regressed, 5 measured * nothing dropped"])
    off = project.pytest("-n", "2", "--opprof=off", plugins=XDIST, writes_run=False)
    assert off.exit_code == 0
    assert "= opprof =" not in off.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "passed"), [(("--dist=loadfile",), 1), (("-n", "2", "--collect-only"), 0)], ids=str
)
def test_settings_of_xdist_without_workers(project: Project, arguments: tuple[str, ...], passed: int) -> None:
    project.write("test_it.py", "import pytest\n@pytest.mark.profile\ndef test_it(): pass\n")
    session = project.pytest(*arguments, plugins=XDIST)
    assert session.exit_code == 0
    assert list(session.outcomes.values()) == ["passed"] * passed


@pytest.mark.slow
def test_a_stopped_clock_loses_no_result(project: Project) -> None:
    project.write(
        "test_it.py",
        """\
        import time, types
        import pytest

        @pytest.mark.profile
        @pytest.mark.parametrize("number", range(4))
        def test_it(number, monkeypatch):
            monkeypatch.setattr(time, "time_ns", lambda: 1)
        """,
    )
    session = project.pytest("-n", "1", "--opprof-save=main", plugins=XDIST)
    assert session.exit_code == 0
    assert len(read_run(project.stored()[0]).tests) == 4


@pytest.mark.slow
def test_the_next_session_removes_the_folder_of_a_killed_one(project: Project) -> None:
    project.write(
        "test_it.py",
        """\
        import os, signal
        import pytest

        @pytest.mark.profile
        def test_it():
            if "KILLS" in os.environ:
                os.kill(os.getppid(), signal.SIGKILL)
                os._exit(1)
        """,
    )
    temporary = project.folder / "tmp"
    temporary.mkdir()
    env = {"TMPDIR": str(temporary)}
    killed = project.pytest("-n", "1", plugins=XDIST, env={**env, "KILLS": "yes"})
    assert killed.exit_code == -signal.SIGKILL
    assert len(list(temporary.glob("opprof-workers-*"))) == 1
    assert project.pytest("-n", "1", plugins=XDIST, env=env).exit_code == 0
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_lost_result_fails_the_session(project: Project) -> None:
    project.write(
        "test_it.py",
        """\
        import shutil, tempfile
        from pathlib import Path
        import pytest

        @pytest.mark.profile
        def test_it():
            for folder in Path(tempfile.gettempdir()).glob("opprof-workers-*"):
                if folder.is_dir():
                    shutil.rmtree(folder)
                    folder.touch()
        """,
    )
    temporary = project.folder / "tmp"
    temporary.mkdir()
    session = project.pytest("-n", "1", plugins=XDIST, env={"TMPDIR": str(temporary)})
    assert session.outcomes == {"test_it": "passed"}
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    (line,) = session.told
    assert line.startswith("opprof: test_it.py::test_it: ")
    assert "cannot be written: a part of its path is a file" in line


@pytest.mark.slow
@pytest.mark.parametrize(("scope", "exit_code"), [("function", 0), ("module", 1)])
def test_a_fixture_that_replaces_files_costs_no_result(project: Project, scope: str, exit_code: int) -> None:
    project.write(
        "test_it.py",
        f"""\
        import os
        import pytest

        @pytest.fixture(scope="{scope}")
        def no_files():
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(os, "replace", lambda *_, **__: None)
                yield

        @pytest.mark.profile
        def test_it(no_files):
            pass

        @pytest.mark.profile
        def test_last(no_files):
            pass
        """,
    )
    session = project.pytest("-n", "1", plugins=XDIST)
    assert session.exit_code == exit_code
    measured = {test.node_id.rpartition("::")[2] for test in session.run.tests}
    if scope == "function":
        assert (measured, session.told) == ({"test_it", "test_last"}, [])
    else:
        assert measured == {"test_last"}, "the module's fixtures are gone after its last test"
        assert any(
            line.startswith("opprof: test_it.py::test_it: the result is lost") for line in session.told
        )


@pytest.mark.slow
def test_workers_notes_reach_the_summary(project: Project) -> None:
    project.write("test_it.py", "import pytest\n\n@pytest.mark.profile\ndef test_it():\n    pass\n")
    session = project.pytest("-n", "1", "--opprof-traces=pytest.ini", plugins=XDIST)
    assert any("the trace " in line and "cannot be written" in line for line in session.told)
    idle = project.pytest("-n", "1", "--opprof-mark=test_no.py", "--deselect=test_it.py", plugins=XDIST)
    assert any("--opprof-mark=test_no.py matches no test here" in line for line in idle.told)
