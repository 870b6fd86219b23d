"""Benchmark fixtures other than pytest-benchmark's: a project's own, and CodSpeed's."""

import json

import pytest
from e2e.benchmarking import BENCHMARK, QUICK, WORK
from e2e.project import Project

OTHERS = (
    WORK
    + """\
    class Stopwatch:
        extra_info = ()
        used = 0

        def __call__(self, function, *args, **kwargs):
            self.used += 1
            assert self.used == 1
            return function(*args, **kwargs)

        def pedantic(self, target):
            return self(target)

    @pytest.fixture
    def benchmark(request):
        return {"name": "mine"} if "setting" in request.node.name else Stopwatch()

    @pytest.mark.profile
    def test_setting(benchmark):
        assert benchmark["name"] == "mine"
        work()

    @pytest.mark.profile
    def test_stopwatch(benchmark):
        benchmark(work)

    @pytest.mark.profile
    def test_stopwatch_by_name(benchmark, opprof):
        assert opprof.benchmark(benchmark, work, times=2) == 2

    @pytest.mark.profile
    def test_nothing_to_benchmark_with(opprof):
        opprof.benchmark(lambda function: function(), work)

    def test_unmarked(benchmark, opprof):
        assert opprof.benchmark(benchmark, work, 4) == 4
"""
)


def test_other_fixtures_of_that_name_are_left_alone(project: Project) -> None:
    project.write("test_it.py", OTHERS)
    session = project.pytest()
    assert {name for name, outcome in session.outcomes.items() if outcome != "passed"} == {
        "test_nothing_to_benchmark_with"
    }
    assert "make `benchmark` an argument of the test" in session.failures["test_nothing_to_benchmark_with"]
    assert session.result("test_setting").totals["ranges.count"].low == 1
    assert session.result("test_stopwatch_by_name").totals["ranges.count"].low == 2
    assert session.result("test_stopwatch").measurement.reason == (
        "its benchmark fixture (test_it.Stopwatch) hides the function that it times: take the opprof "
        "fixture too, and call opprof.benchmark(benchmark, function, ...)"
    )


CODSPEED = (*BENCHMARK, "codspeed")
MEASURES = ("--codspeed", "--codspeed-warmup-time=0", "--codspeed-max-time=0.01")
IN_CODSPEED = (
    WORK
    + """\
    @pytest.mark.profile
    def test_fixture(benchmark):
        windows = []
        benchmark(lambda: windows.append(recording()))
        assert windows and not any(windows)

    @pytest.mark.profile(limits={"work.count": 0})
    @pytest.mark.benchmark
    def test_marker():
        work()
        assert not recording()

    @pytest.mark.profile
    def test_own_fixture(codspeed_benchmark, opprof):
        assert opprof.benchmark(codspeed_benchmark, work, 2) == 2
"""
)


@pytest.fixture
def codspeed(project: Project) -> Project:
    """A project for CodSpeed, which compiles a library when it is first loaded."""
    pytest.importorskip("pytest_codspeed")
    project.write("test_it.py", IN_CODSPEED)
    return project


def test_codspeed_measures_alone(codspeed: Project) -> None:
    session = codspeed.pytest(*MEASURES, plugins=CODSPEED, writes_run=False)
    assert set(session.outcomes.values()) == {"passed"}
    assert session.exit_code == 0
    session.lines.fnmatch_lines(
        ["opprof: CodSpeed measures this session: marked tests are not profiled in it"]
    )
    assert "= opprof =" not in session.stdout
    (results,) = (codspeed.folder / ".codspeed").glob("*.json")
    assert len(json.loads(results.read_text())["benchmarks"]) == 3


def test_a_gate_is_never_skipped_for_codspeed(codspeed: Project) -> None:
    session = codspeed.pytest(*MEASURES, "--opprof-baseline=main", plugins=CODSPEED, writes_run=False)
    assert session.exit_code == pytest.ExitCode.USAGE_ERROR
    (told,) = session.told
    assert told.startswith("ERROR: opprof: CodSpeed measures this session, so opprof cannot profile")


def test_codspeeds_own_fixture_is_followed_on_request(codspeed: Project) -> None:
    session = codspeed.pytest(*QUICK, "-k", "own_fixture", plugins=CODSPEED)
    assert session.outcomes == {"test_own_fixture": "passed"}
    assert session.result("test_own_fixture").totals["ranges.count"].low == 2
