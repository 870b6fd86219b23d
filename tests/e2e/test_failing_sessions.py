"""A verdict that fails a test fails the session too, even if other plugins change the test's report."""

import pytest
from e2e.project import Project, Session

TESTS = """\
    import pytest
    from pytest_opprof import record_function

    MORE = 0

    @pytest.mark.profile
    def test_it():
        for _ in range(1 + MORE):
            with record_function("work"):
                pass
"""

# Things that a conftest.py may do with reports.
TAKES_THE_REPORT = {
    "passes it": """\
        import pytest

        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_runtest_makereport(item, call):
            report = yield
            report.outcome, report.longrepr = "passed", None
            return report
    """,
    "logs none": """\
        from _pytest.runner import runtestprotocol

        def pytest_runtest_protocol(item, nextitem):
            runtestprotocol(item, log=False, nextitem=nextitem)
            return True
    """,
}


def regressed(project: Project, *arguments: str, plugins: tuple[str, ...] = ()) -> Session:
    """A session that finds one more range than the baseline has."""
    project.write("test_it.py", TESTS)
    saved = project.pytest("--opprof-save=main", *arguments, plugins=plugins)
    assert saved.exit_code == 0
    assert not any("not certified" in line for line in saved.told)
    same = project.pytest("--opprof-baseline=main", *arguments, plugins=plugins)
    assert same.exit_code == 0
    project.replace("test_it.py", "MORE = 0", "MORE = 1")
    return project.pytest("--opprof-baseline=main", *arguments, plugins=plugins)


# Calls a failed test again as pytest-retry does: pytest hears only the last outcome, and makes no report of it.
RETRY = """\
    import pytest
    from _pytest.runner import runtestprotocol

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(item, call):
        report = yield
        if call.when == "call" and report.failed:
            for _ in range(2):
                item.ihook.pytest_runtest_teardown(item=item, nextitem=None)
                item._initrequest()
                item.ihook.pytest_runtest_setup(item=item)
                again = pytest.CallInfo.from_call(lambda: item.ihook.pytest_runtest_call(item=item), when="call")
                if again.excinfo is None:
                    break
            report.outcome, report.longrepr = ("failed" if again.excinfo else "passed"), None
        return report
"""
RETRIED = """\
    import pytest
    from pytest_opprof import record_function

    CALLS = []

    @pytest.mark.profile(limits={{"work.count": {limit}}})
    def test_it():
        CALLS.append(0)
        assert len(CALLS) > 2
        with record_function("work"):
            pass
"""


@pytest.mark.parametrize(("limit", "exit_code"), [(1, 0), (0, 1)], ids=["kept", "broken"])
def test_a_call_without_a_report_is_judged(project: Project, limit: int, exit_code: int) -> None:
    project.write("conftest.py", RETRY)
    project.write("test_it.py", RETRIED.format(limit=limit))
    session = project.pytest("--opprof-save=main", "--opprof-save-processes=1")
    assert (session.outcomes, session.exit_code) == ({"test_it": "passed"}, exit_code)
    assert any("saved 1 test as main" in line for line in session.told) != bool(exit_code)
    assert session.result("test_it").steps == 3
    lost = "test_it.py::test_it: REGRESSED, but another plugin replaced or dropped the failed report"
    assert any(lost in line for line in session.told) == bool(exit_code)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "in a worker"])
@pytest.mark.parametrize("conftest", TAKES_THE_REPORT)
def test_no_plugin_hides_a_regression(project: Project, conftest: str, workers: tuple[str, ...]) -> None:
    project.write("conftest.py", TAKES_THE_REPORT[conftest])
    session = regressed(project, *workers, plugins=("xdist",) if workers else ())
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert session.told[-1] == (
        "opprof: test_it.py::test_it: REGRESSED, but another plugin replaced or dropped the failed report"
    )
    assert session.banner.startswith("test_it.py::test_it: REGRESSED")


OTHER_EXITS = {
    2: "def pytest_runtest_logreport(report):\n    if report.failed: raise KeyboardInterrupt",
    0: "def pytest_sessionfinish(session):\n    session.exitstatus = 0",
}


@pytest.mark.slow
@pytest.mark.parametrize("code", OTHER_EXITS)
def test_the_last_line_has_the_exit_code_of_the_session(project: Project, code: int) -> None:
    project.write("conftest.py", OTHER_EXITS[code])
    session = regressed(project)
    assert session.exit_code == code
    session.lines.fnmatch_lines([f"exit {code}, and 1 test regressed"])


@pytest.mark.slow
def test_a_worker_that_stops_at_a_regression_interrupts_the_session(project: Project) -> None:
    pytest.importorskip("xdist")
    session = regressed(project, "-n", "1", "-x", plugins=("xdist",))
    assert session.exit_code == pytest.ExitCode.INTERRUPTED
    session.lines.fnmatch_lines(["exit 2, and 1 test regressed"])


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "in a worker"])
def test_flaky_reports_a_regression_once(project: Project, workers: tuple[str, ...]) -> None:
    pytest.importorskip("flaky")
    plugins = ("flaky.flaky_pytest_plugin", *(["xdist"] if workers else []))
    session = regressed(project, "--force-flaky", *workers, plugins=plugins)
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert session.outcomes == {"test_it": "failure"}
    assert session.failures["test_it"].startswith("REGRESSED: 1 more range")
    session.lines.fnmatch_lines(["*= 1 failed in *"])


@pytest.mark.slow
def test_flaky_lets_a_steady_last_run_pass(project: Project) -> None:
    pytest.importorskip("flaky")
    project.write("test_it.py", TESTS)
    project.pytest("--opprof-save=main")
    project.write(
        "conftest.py",
        """\
        import test_it

        def pytest_runtest_setup(item):
            test_it.MORE = max(0, 1 - getattr(item, "runs", 0))
            item.runs = getattr(item, "runs", 0) + 1
        """,
    )
    session = project.pytest(
        "--opprof-baseline=main", "--force-flaky", plugins=("flaky.flaky_pytest_plugin",)
    )
    assert session.exit_code == 0
    session.lines.fnmatch_lines(["*1 passed * nothing dropped*", "*= 1 passed in *"])


@pytest.mark.slow
def test_a_measurement_error_says_that_it_fails_the_session(project: Project) -> None:
    project.write(
        "test_it.py",
        """\
        import pytest

        @pytest.mark.profile
        def test_it(tmp_path):
            (tmp_path / "d").mkdir()
        """,
    )
    for arguments in ((), ("-q",), ("--no-summary",)):
        session = project.pytest("--opprof-save=main", *arguments)
        assert session.exit_code == pytest.ExitCode.TESTS_FAILED
        assert session.outcomes == {"test_it": "passed"}
        assert session.banner.startswith("test_it.py::test_it: cannot be repeated: ")
        assert session.stdout.count("call 2 raised FileExistsError") == 2, "beside the test, and there"
        session.lines.fnmatch_lines(["*1 passed in *"])


@pytest.mark.slow
def test_empty_session_fails_if_a_test_is_missing(project: Project) -> None:
    project.write("test_it.py", TESTS)
    assert project.pytest("--opprof-save=main").exit_code == 0
    project.write("test_it.py", "# the test is gone\n")
    session = project.pytest("--opprof-baseline=main")
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert session.banner == "test_it.py::test_it: its file was collected without it"
