"""``--opprof-timed-steps``: steps without the profiler, and their wall time."""

from pathlib import Path

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project

TESTS = """\
    import pytest
    from pytest_opprof import record_function

    @pytest.mark.profile(limits={"wall_time": "<= 100 s"})
    def test_it():
        with record_function("work"):
            sum(range(100))

    @pytest.mark.profile(warmup=0, active=1)
    def test_ends(opprof):
        opprof.step()

    def test_unmarked(): pass
"""


@pytest.fixture(scope="module")
def project(make_project: MakeProject) -> Project:
    project = make_project("timed")
    project.write("test_it.py", TESTS)
    return project


def test_wall_time_is_measured_judged_and_shown(project: Project) -> None:
    session = project.pytest("--opprof-timed-steps=6", "--opprof-timed-max-time=0", "-v")
    assert session.exit_code == 0
    test = session.result("test_it")
    assert (test.totals["wall_time"].steps, test.steps) == (6, 3)
    session.lines.fnmatch_lines(
        [
            "test *verdict *self CPU * wall time *",
            "opprof: test_it.py::test_ends: no wall time: the test ended with its schedule*",
        ]
    )
    shown = project.python("-m", "pytest_opprof.cli.main", "show", str(session.document))
    assert "at best of 6 without the profiler" in shown.stdout


def test_wall_time_limit_without_the_option_does_not_pass(project: Project) -> None:
    session = project.pytest("-k", "test_it")
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert "the limit on wall_time cannot be judged: it was not measured" in session.stdout


@pytest.mark.slow
def test_a_gate_on_wall_time_survives_its_document(project: Project, tmp_path: Path) -> None:
    """Its values are not one per active step."""
    runs = [project.pytest("--opprof-timed-steps=5", "-k", "test_ends or test_it") for _ in range(2)]
    written = tmp_path / "comparison.json"
    compared = project.python(
        *("-m", "pytest_opprof.cli.main", "compare", *(str(run.document) for run in runs)),
        *("--gate=wall_time=2%", "--fail-on=none", "-o", str(written)),
    )
    assert compared.returncode == 0
    shown = project.python("-m", "pytest_opprof.cli.main", "show", str(written))
    assert shown.returncode == 0, shown.stderr


def test_the_ini_key_does_the_same(project: Project) -> None:
    session = project.pytest("-o", "opprof_timed_steps=2", "-k", "test_it")
    assert session.result("test_it").timing.planned == 2


@pytest.mark.slow
def test_workers_of_xdist_time_nothing_and_say_so(project: Project) -> None:
    session = project.pytest("-n", "1", "--opprof-timed-steps=2", "--opprof-fail-on=none", plugins=("xdist",))
    assert session.exit_code == 0
    assert "wall_time" not in session.result("test_it").totals
    assert (
        sum(
            "no steps were timed: pytest-xdist runs other tests at the same time" in line
            for line in session.told
        )
        == 1
    )
