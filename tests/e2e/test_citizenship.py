"""Other plugins, options and habits see what they expect from pytest, or nothing at all."""

import json
from xml.etree import ElementTree as ET

import pytest
from e2e.conftest import MakeProject
from e2e.project import INI, Project, Session

TESTS = """\
    import pytest
    from pytest_opprof import record_function

    def work(times):
        for _ in range(times):
            with record_function("work"):
                pass

    @pytest.mark.profile
    def test_first():
        work(1)

    @pytest.mark.profile
    def test_second():
        work(1)

    def test_plain():
        pass
"""


@pytest.fixture(scope="module")
def regressed(make_project: MakeProject) -> tuple[Project, Session]:
    """A project whose first test has regressed, and the session that found it."""
    project = make_project("regressed")
    project.write("test_it.py", TESTS)
    project.pytest("--opprof-save=main")
    project.replace("test_it.py", "def test_first():\n    work(1)", "def test_first():\n    work(2)")
    return project, project.pytest("--opprof-baseline=main")


@pytest.mark.slow
def test_junit_has_the_section_and_counts_a_failure(regressed: tuple[Project, Session]) -> None:
    _, session = regressed
    suite = ET.parse(session.junit).getroot()[0]  # noqa: S314  # pytest wrote it a moment ago
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["errors"]) == ("3", "1", "0")
    (failure,) = suite.iter("failure")
    assert failure.attrib["message"].startswith("REGRESSED: 1 more range in each step than main")
    assert "work" in (failure.text or "")


@pytest.mark.skipif(pytest.version_tuple < (9,), reason="older pytests show the reasons of exceptions alone")
def test_the_short_summary_names_the_reason(regressed: tuple[Project, Session]) -> None:
    regressed[1].lines.fnmatch_lines(
        ["FAILED test_it.py::test_first - REGRESSED: 1 more range in each step*"]
    )


@pytest.mark.slow
def test_last_failed_reruns_a_regressed_test(regressed: tuple[Project, Session]) -> None:
    project, _ = regressed
    project.pytest("--opprof-baseline=main")
    again = project.pytest("--opprof-baseline=main", "--lf")
    assert again.outcomes == {"test_first": "failure"}


@pytest.mark.slow
def test_exit_first_stops_at_a_regression(regressed: tuple[Project, Session]) -> None:
    project, _ = regressed
    assert project.pytest("--opprof-baseline=main", "-x").outcomes == {"test_first": "failure"}


@pytest.mark.slow
def test_quiet_session_prints_one_line(regressed: tuple[Project, Session]) -> None:
    project, _ = regressed
    quiet = project.pytest("--opprof-baseline=main", "-q", "--tb=no")
    assert "= opprof =" not in quiet.stdout
    assert "opprof 0." not in quiet.stdout
    assert quiet.told[-2:] == [
        "opprof: 1 regressed, 1 passed · nothing dropped",
        "opprof: exit 1: 1 test regressed",
    ]
    quieter = project.pytest("--opprof-baseline=main", "-qq", "--tb=line")
    assert quieter.exit_code == pytest.ExitCode.TESTS_FAILED


@pytest.mark.slow
def test_passed_tests_fold_unless_verbose(regressed: tuple[Project, Session]) -> None:
    project, session = regressed
    _, _, summary = session.stdout.partition("= opprof =")
    assert "test_second" not in summary
    verbose = project.pytest(
        "--opprof-baseline=main", "-v", "--opprof-columns=Name,# of Calls", "--opprof-rows=1"
    )
    _, _, summary = verbose.stdout.partition("= opprof =")
    table = pytest.LineMatcher(summary.splitlines())
    table.fnmatch_lines(["test_it.py::test_second", "*", " *Name * # of Calls*", "*", "*ProfilerStep* * 1 *"])
    table.fnmatch_lines(["test_second * PASS *", "1 regressed, 1 passed * nothing dropped"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("-p", "no:cacheprovider"),
        ("--import-mode=importlib",),
        ("-s", "--tb=short", "--color=yes", "--durations=2"),
        ("-p", "no:logging", "-p", "no:capture", "-p", "no:assertion", "-p", "no:warnings"),
    ],
    ids=" ".join,
)
def test_other_options_change_nothing(regressed: tuple[Project, Session], arguments: tuple[str, ...]) -> None:
    project, _ = regressed
    assert project.pytest("--opprof-baseline=main", *arguments).outcomes == {
        "test_first": "failure",
        "test_second": "passed",
        "test_plain": "passed",
    }


def test_exit_code_fails_without_the_terminal_plugin(regressed: tuple[Project, Session]) -> None:
    project, _ = regressed
    session = project.pytest("--opprof-baseline=main", "-p", "no:terminal")
    assert (session.exit_code, session.stdout) == (pytest.ExitCode.TESTS_FAILED, "")
    assert session.outcomes["test_first"] == "failure"


def test_collect_only_measures_and_stores_nothing(regressed: tuple[Project, Session]) -> None:
    project, _ = regressed
    session = project.pytest("--co", "-q", "--opprof-baseline=main", "--opprof-save=other")
    assert session.exit_code == 0
    assert session.stdout.splitlines()[:3] == [
        f"test_it.py::{name}" for name in ("test_first", "test_second", "test_plain")
    ]
    assert session.told == []
    assert project.stored("other") == []
    assert not session.document.exists()


AUTOLOAD = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": ""}
NO_OTHERS = [
    part for name in ("anyio", "asyncio", "benchmark", "randomly", "xdist") for part in ("-p", f"no:{name}")
]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(), ("-p", "opprof")], ids=["by itself", "by name as well"])
def test_plugin_loads_by_its_entry_point(project: Project, arguments: tuple[str, ...]) -> None:
    project.write("pytest.ini", INI.replace("addopts = -p opprof\n", ""))
    project.write("test_it.py", TESTS)
    session = project.pytest(*NO_OTHERS, *arguments, env=AUTOLOAD)
    assert session.result("test_first").steps == 3


def test_plugin_can_be_disabled(project: Project) -> None:
    project.write("pytest.ini", INI.replace("addopts = -p opprof\n", ""))
    project.write("test_it.py", TESTS)
    unknown = project.pytest(*NO_OTHERS, "-p", "no:opprof", "--opprof=on", env=AUTOLOAD, writes_run=False)
    assert unknown.exit_code == pytest.ExitCode.USAGE_ERROR
    assert "unrecognized arguments: --opprof=on" in unknown.stderr
    session = project.pytest(
        *NO_OTHERS,
        "-p",
        "no:opprof",
        "-W",
        "ignore:Unknown pytest.mark.profile",
        env=AUTOLOAD,
        writes_run=False,
    )
    assert set(session.outcomes.values()) == {"passed"}


@pytest.mark.slow
def test_in_random_order_the_verdicts_are_the_same(regressed: tuple[Project, Session]) -> None:
    pytest.importorskip("pytest_randomly")
    project, _ = regressed
    for seed in (1, 2):
        session = project.pytest("--opprof-baseline=main", f"--randomly-seed={seed}", plugins=("randomly",))
        assert {name for name, outcome in session.outcomes.items() if outcome != "passed"} == {"test_first"}


@pytest.mark.slow
def test_a_save_in_random_order_is_certified(project: Project) -> None:
    pytest.importorskip("pytest_randomly")
    project.write("test_it.py", TESTS)
    saved = project.pytest("--opprof-save=main", "--randomly-seed=3", plugins=("randomly",))
    assert not any("not certified" in line for line in saved.told)


@pytest.mark.slow
def test_benchmarks_beside_it_are_left_alone(project: Project) -> None:
    project.write("test_it.py", TESTS + "\n    def test_bench(benchmark):\n        benchmark(work, 3)\n")
    session = project.pytest("--opprof-save=main", "--benchmark-min-rounds", "2", plugins=("benchmark",))
    assert session.exit_code == 0
    assert not any("not certified" in line for line in session.told)


LOADED = """\
    import json, sys

    HEAVY = {"pytest_opprof", "cffi", "_cffi_backend", "jsonschema_rs", "torch", "pytest_benchmark"}

    def pytest_unconfigure(config):
        worker = getattr(config, "workerinput", {}).get("workerid", "main")
        loaded = sorted(name for name in sys.modules if name.partition(".")[0] in HEAVY)
        (config.rootpath / f"loaded-{worker}.json").write_text(json.dumps(loaded))
"""
HOOKS = [
    "pytest_opprof",
    "pytest_opprof.plugin",
    "pytest_opprof.plugin.hooks",
    "pytest_opprof.plugin.option_table",
    "pytest_opprof.plugin.options",
    "pytest_opprof.plugin.stash",
]


def test_unused_plugin_loads_hooks_and_prints_nothing(project: Project) -> None:
    project.write("conftest.py", LOADED)
    project.write("test_it.py", "def test_plain(): pass")
    session = project.pytest(writes_run=False)
    assert session.exit_code == 0
    assert json.loads((project.folder / "loaded-main.json").read_text()) == HOOKS
    assert "opprof" not in session.stdout.replace("plugins: opprof", "").replace("opprof-0.1.0", "")


def test_unused_under_xdist_it_loads_little_more(project: Project) -> None:
    pytest.importorskip("xdist")
    project.write("conftest.py", LOADED)
    project.write("test_it.py", "def test_plain(): pass")
    session = project.pytest("-n", "1", plugins=("xdist",), writes_run=False)
    assert session.exit_code == 0
    assert json.loads((project.folder / "loaded-gw0.json").read_text()) == HOOKS
    more = ("experiment", "experiment.place", "locks", "plugin.controller")
    assert json.loads((project.folder / "loaded-main.json").read_text()) == sorted(
        [*HOOKS, *(f"pytest_opprof.{name}" for name in more)]
    )
    assert "= opprof =" not in session.stdout


def test_the_marker_is_registered_and_shown(project: Project) -> None:
    session = project.pytest("--markers", "--strict-markers", writes_run=False)
    assert "@pytest.mark.profile(activities=None, *, schedule=None" in session.stdout


def test_help_names_every_option_and_ini_key(project: Project) -> None:
    session = project.pytest("--help", writes_run=False)
    for name in (
        "save",
        "baseline",
        "store",
        "fail-on",
        "gate",
        "capture",
        "sort",
        "columns",
        "rows",
        "traces",
        "json",
    ):
        assert f"--opprof-{name}=" in session.stdout
        assert f"opprof_{name.replace('-', '_')} (" in session.stdout


@pytest.mark.slow
def test_ini_keys_stand_in_for_options(project: Project) -> None:
    project.write("test_it.py", TESTS)
    project.write("sub/test_too.py", TESTS)
    keys = "opprof_save = main\nopprof_store = kept\nopprof_traces = traces\nopprof_json = run.json\n"
    project.write("pytest.ini", INI + keys)
    session = project.pytest("test_too.py", cwd="sub", writes_run=False)
    assert session.exit_code == 0
    # Paths in the ini file are relative to it, wherever pytest starts.
    assert len(list((project.folder / "kept" / "main").iterdir())) == 1
    assert len(list((project.folder / "traces").iterdir())) == 2
    assert (project.folder / "run.json").exists()


@pytest.mark.slow
def test_an_xpass_that_regressed_is_a_failure(project: Project) -> None:
    project.write(
        "test_it.py", TESTS.replace("@pytest.mark.profile", "@pytest.mark.xfail\n    @pytest.mark.profile")
    )
    project.pytest("--opprof-save=main")
    project.replace("test_it.py", "def test_first():\n    work(1)", "def test_first():\n    work(2)")
    session = project.pytest("--opprof-baseline=main")
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    session.lines.fnmatch_lines(["*1 failed, 1 passed, 1 xpassed*"])


@pytest.mark.slow
def test_a_program_may_run_pytest_under_coverage(project: Project) -> None:
    pytest.importorskip("coverage")
    project.write("test_it.py", TESTS)
    project.write(
        "run.py",
        """\
        import coverage, pytest

        measured = coverage.Coverage(data_file=None, source=["."])
        with measured.collect():
            code = pytest.main(["-q", "--opprof-save=main"])
        _, _, missing, _ = measured.analysis("test_it.py")
        raise SystemExit(code or len(missing))
        """,
    )
    done = project.python("run.py")
    assert done.returncode == 0
    assert "not certified" not in done.stdout
