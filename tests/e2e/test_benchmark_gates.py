"""Counts of benchmarked functions gate in every mode of pytest-benchmark, even without timing."""

import pytest
from e2e.benchmarking import BENCHMARK, GATED, QUICK
from e2e.conftest import MakeProject
from e2e.project import Project


@pytest.fixture(scope="module")
def gated(make_project: MakeProject) -> Project:
    """A saved project in which one benchmarked function has grown since."""
    project = make_project("gated")
    project.write("test_it.py", GATED)
    saved = project.pytest(*QUICK, "--opprof-save=main", plugins=BENCHMARK)
    assert saved.exit_code == 0
    assert not any("not certified" in line for line in saved.told)
    project.replace("test_it.py", "work(2)))", "work(3)))")
    return project


def test_the_certifying_process_does_not_time(gated: Project) -> None:
    timed, certified, *_ = (gated.folder / "calls.log").read_text().splitlines()
    assert int(timed) > int(certified) == 1 + 4


@pytest.mark.slow
def test_a_project_that_wants_benchmarks_alone_is_certified_too(project: Project) -> None:
    project.replace("pytest.ini", "-p opprof", "-p opprof -p benchmark --benchmark-only")
    project.write("test_it.py", GATED)
    saved = project.pytest(*QUICK, "--opprof-save=main")
    assert not any("not certified" in line for line in saved.told)
    assert saved.exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "outcomes"),
    [
        (("--benchmark-disable",), {"test_grows": "failure", "test_stays": "passed", "test_plain": "passed"}),
        (
            (*QUICK, "--benchmark-only"),
            {"test_grows": "failure", "test_stays": "passed", "test_plain": "skipped"},
        ),
        (
            ("--benchmark-skip",),
            {"test_grows": "skipped", "test_stays": "skipped", "test_plain": "passed"},
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_counts_gate_in_every_mode(
    gated: Project, arguments: tuple[str, ...], outcomes: dict[str, str]
) -> None:
    session = gated.pytest(*arguments, "--opprof-baseline=main", plugins=BENCHMARK)
    assert session.outcomes == outcomes
    if "failure" in outcomes.values():
        assert "REGRESSED: 1 more range in each step than main" in session.failures["test_grows"]
    assert session.exit_code == ("failure" in outcomes.values())


@pytest.mark.slow
def test_counts_gate_in_workers_without_timing(gated: Project) -> None:
    pytest.importorskip("xdist")
    session = gated.pytest("-n", "2", "--opprof-baseline=main", plugins=(*BENCHMARK, "xdist"))
    assert session.outcomes == {"test_grows": "failure", "test_stays": "passed", "test_plain": "passed"}
