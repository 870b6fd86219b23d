"""Tests that each run in a forked child: the session has the children's measurements."""

import pytest
from e2e.project import Project

from pytest_opprof.results.files import read_run

# Forks as pytest-forked does, for any pytest release.
CONFTEST = """\
    import os, pickle
    from _pytest.reports import TestReport
    from _pytest.runner import runtestprotocol

    def pytest_runtest_protocol(item, nextitem):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
            with os.fdopen(writing, "wb") as file:
                pickle.dump([report._to_json() for report in reports], file)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as file:
            reports = pickle.load(file)
        os.waitpid(child, 0)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=TestReport._from_json(report))
        return True
"""
TESTS = """\
    import pytest
    from pytest_opprof import record_function

    MORE = 0

    @pytest.mark.profile
    @pytest.mark.parametrize("number", [1, 2])
    def test_it(number):
        for _ in range(number + MORE):
            with record_function("work"):
                pass
"""


@pytest.mark.slow
def test_forked_tests_are_saved_and_gated(project: Project) -> None:
    project.write("conftest.py", CONFTEST)
    project.write("test_it.py", TESTS)
    quiet = ("-W", "ignore::DeprecationWarning")
    saved = project.pytest("--opprof-save=main", *quiet)
    assert saved.exit_code == 0
    assert [test.processes for test in read_run(project.stored()[-1]).tests] == [2, 2]
    assert len(list((project.folder / ".opprof" / "traces" / "saved").glob("*.json.gz"))) == 2
    assert project.pytest("--opprof-baseline=main", *quiet).exit_code == 0
    project.replace("test_it.py", "MORE = 0", "MORE = 1")
    more = project.pytest("--opprof-baseline=main", *quiet)
    assert more.exit_code == pytest.ExitCode.TESTS_FAILED
    assert set(more.outcomes.values()) == {"failure"}
    more.lines.fnmatch_lines(["2 regressed * nothing dropped"])
    assert all(text.startswith("REGRESSED: 1 more range") for text in more.failures.values())
