"""Marked tests with pytest-benchmark's fixture: timed as without us, then profiled."""

import json
from typing import Any

import pytest
from e2e.benchmarking import BENCHMARK, QUICK, WORK
from e2e.conftest import MakeProject
from e2e.project import Project, Session

from pytest_opprof.compare.document import read_comparison
from pytest_opprof.results.files import read_run

TESTS = (
    WORK
    + """\
    pytestmark = pytest.mark.profile(warmup=1, active=2)

    def test_timed_first(benchmark):
        windows = []

        def timed():
            windows.append(recording())
            return work(2)

        assert benchmark(timed) == 2
        assert len(windows) > 3 + 3 + 2
        assert not any(windows[:-5]) and windows[-5:] == [True, True, False, False, False]

    @pytest.mark.benchmark(group="mine")
    @pytest.mark.parametrize("times", [3])
    def test_with_arguments(benchmark, times):
        benchmark.extra_info["mine"] = 7
        assert benchmark(work, times=times) == 3

    def test_pedantic_state(benchmark):
        log = []

        def setup():
            with record_function("setup"):
                log.append("setup")
            return ([1, 2],), {"more": 3}

        def consume(items, more):
            assert items.pop() + more == 5
            log.append("recorded" if recording() else "call")
            work()

        def teardown(items, more):
            with record_function("teardown"):
                assert (items, more) == ([1], 3)
            log.append("teardown")

        benchmark.pedantic(consume, setup=setup, teardown=teardown, rounds=2)
        once = ["setup", "call", "teardown"]
        assert log == 3 * once + 2 * ["setup", "recorded", "teardown"] + 3 * once

    def test_pedantic_arguments(benchmark):
        assert benchmark.pedantic(work, args=(2,), rounds=2) == 2

    def test_pedantic_iterations(benchmark):
        assert benchmark.pedantic(work, kwargs={"times": 4}, rounds=2, iterations=5) == 4

    class Thing:
        def run(self):
            return work(5)

    def test_weave(benchmark_weave):
        pytest.importorskip("aspectlib")
        benchmark_weave(Thing.run, lazy=True)
        assert Thing().run() == 5

    class TestMethod:
        def test_method(self, benchmark):
            benchmark(work)

    def test_counts_are_there_afterwards(opprof, benchmark):
        benchmark(work, 2)
        assert opprof.counts["work"] == 4

    def test_asked_for_by_name(benchmark, opprof):
        assert opprof.benchmark(benchmark, work, times=3) == 3
        assert opprof.counts["work"] == 6

    @pytest.mark.benchmark(cprofile=True)
    def test_cprofile(benchmark):
        benchmark(work)

    def test_fails_afterwards(benchmark):
        benchmark(work)
        raise AssertionError("as it should")

    def test_fails_inside(benchmark):
        benchmark(lambda: 1 / 0)

    def test_fails_when_recorded(benchmark):
        def once():
            if recording():
                raise RuntimeError
        benchmark(once)

    def test_fails_when_timed(benchmark):
        calls = []

        def setup():
            calls.append(1)
            if len(calls) > 1 + 3 + 2:
                raise OSError
        benchmark.pedantic(work, setup=setup, rounds=1)

    def test_setup_fails_later(benchmark):
        calls = []

        def setup():
            calls.append(1)
            if len(calls) > 3:
                raise OSError
        benchmark.pedantic(work, setup=setup, rounds=2)

    def test_steps_itself_as_well(benchmark, opprof):
        benchmark(work)
        opprof.step()

    def test_hidden_from_us(request):
        request.getfixturevalue("benchmark")(work)

    def test_skips(benchmark):
        pytest.skip("not today")

    def test_profiles_what_it_benchmarks(benchmark):
        from pytest_opprof import profile

        def profiled():
            if recording():
                with profile():
                    work()
            work()
        benchmark(profiled)

    @pytest.mark.filterwarnings("ignore:Benchmark fixture was not used")
    def test_unused(benchmark):
        work()
"""
)
# The ranges in each measured step.
MEASURED = {
    "test_timed_first": 2,
    "test_with_arguments[3]": 3,
    "test_pedantic_state": 1,
    "test_pedantic_arguments": 2,
    "test_pedantic_iterations": 4,
    "test_method": 1,
    "test_counts_are_there_afterwards": 2,
    "test_asked_for_by_name": 3,
    "test_cprofile": 1,
}
ERRORS = {
    "test_fails_when_recorded": (
        "cannot be repeated: profiled call 2 of the benchmarked function raised RuntimeError. Build its "
        "state in the setup of benchmark.pedantic(), or set warmup=0, active=1"
    ),
    "test_setup_fails_later": (
        "cannot be repeated: profiled call 1 of the benchmarked function raised OSError. Build its "
        "state in the setup of benchmark.pedantic(), or set warmup=0, active=1"
    ),
    "test_profiles_what_it_benchmarks": (
        "the benchmark profiles itself: profiled call 2 of the benchmarked function raised "
        "CaptureBusyError. Leave out its own profiler, or the marker"
    ),
    "test_steps_itself_as_well": (
        "each call of the benchmarked function is a step already: leave out opprof.step()"
    ),
    "test_hidden_from_us": (
        "cannot be repeated: call 2 raised FixtureAlreadyUsed. Make `benchmark` an argument of the test"
    ),
    "test_unused": "the test never called its benchmark fixture, so there was nothing to profile",
}


@pytest.fixture(scope="module")
def benchmarked(make_project: MakeProject) -> tuple[Session, dict[str, Any]]:
    """A session in which tests are timed and profiled, and pytest-benchmark's file of it."""
    project = make_project("benchmarked")
    project.write("test_it.py", TESTS)
    session = project.pytest(
        *(*QUICK, "--benchmark-json=stored.json", "--opprof-timed-steps=3", "--opprof-timed-max-time=0"),
        plugins=BENCHMARK,
    )
    return session, json.loads((project.folder / "stored.json").read_text())


def stored(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {benchmark["name"]: benchmark for benchmark in document["benchmarks"]}


@pytest.mark.parametrize(("name", "ranges"), MEASURED.items(), ids=MEASURED)
def test_timed_function_is_the_stepped_one(
    benchmarked: tuple[Session, dict[str, Any]], name: str, ranges: int
) -> None:
    session, document = benchmarked
    test = session.result(name)
    assert (test.outcome, test.measurement.reason, test.steps) == ("passed", "", 2)
    assert test.totals["ranges.count"].low == test.totals["ranges.count"].high == ranges
    assert test.totals["wall_time"].steps == 3
    summary = stored(document)[name]["extra_info"]["opprof"]
    assert summary["totals"]["ranges.count"] == ranges
    assert (summary["schema"], summary["run_id"], summary["steps"]) == (1, session.run.run_id, 2)


def test_a_woven_function_is_stepped(benchmarked: tuple[Session, dict[str, Any]]) -> None:
    pytest.importorskip("aspectlib")
    assert benchmarked[0].result("test_weave").totals["ranges.count"].low == 5


def test_failing_timed_call_leaves_counts_without_times(
    benchmarked: tuple[Session, dict[str, Any]],
) -> None:
    test = benchmarked[0].result("test_fails_when_timed")
    assert (test.measurement.status, test.steps) == ("ok", 2)
    assert "wall_time" not in test.totals
    assert test.timing.reason.startswith("cannot be called so often: timed call 3 raised OSError")


@pytest.mark.parametrize(("name", "reason"), ERRORS.items(), ids=ERRORS)
def test_profile_pass_errors_fail_only_the_measurement(
    benchmarked: tuple[Session, dict[str, Any]], name: str, reason: str
) -> None:
    session, document = benchmarked
    assert session.outcomes[name] == "passed"
    assert session.result(name).measurement.status == "error"
    assert session.result(name).measurement.reason == reason
    assert "opprof" not in stored(document).get(name, {"extra_info": ()})["extra_info"]


def test_outcomes_match_the_plain_test(benchmarked: tuple[Session, dict[str, Any]]) -> None:
    session, _ = benchmarked
    others = {name: outcome for name, outcome in session.outcomes.items() if outcome != "passed"}
    others.pop("test_weave", None)  # skipped without aspectlib
    assert others == {
        "test_fails_afterwards": "failure",
        "test_fails_inside": "failure",
        "test_skips": "skipped",
    }
    assert session.result("test_fails_afterwards").measurement.status == "not-run"
    assert "plugin/benchmark" not in session.failures["test_fails_inside"]


def test_pytest_benchmark_storage_is_unchanged(benchmarked: tuple[Session, dict[str, Any]]) -> None:
    session, document = benchmarked
    benchmark = stored(document)["test_with_arguments[3]"]
    assert (benchmark["group"], benchmark["extra_info"]["mine"], benchmark["params"]) == (
        "mine",
        7,
        {"times": 3},
    )
    assert benchmark["stats"]["rounds"] >= 2
    assert not any("opprof" in key for key in (*document["machine_info"], *document["commit_info"]))
    fingerprint = dict(session.run.environment.fingerprint)
    assert document["opprof"] == {"run_id": session.run.run_id, "fingerprint": fingerprint}
    assert session.run.environment.details["cpu"] == document["machine_info"]["cpu"]["brand_raw"]
    session.lines.fnmatch_lines(["*benchmark 'mine': 1 tests*"])


def test_stored_times_are_a_baseline_that_informs(
    benchmarked: tuple[Session, dict[str, Any]], project: Project
) -> None:
    session, document = benchmarked
    (project.folder / "stored.json").write_text(json.dumps(document))
    opprof = ("-m", "pytest_opprof.cli.main")
    told = project.python(*opprof, "import-benchmarks", "stored.json", "-o", "times.json")
    assert told.returncode == 0
    assert told.stdout.startswith(f"times.json: wall_time of {len(document['benchmarks'])} tests")
    benchmark = stored(document)["test_pedantic_arguments"]
    (imported,) = (
        test
        for test in read_run(project.folder / "times.json").tests
        if test.node_id == benchmark["fullname"]
    )
    assert imported.totals["wall_time"].low == round(benchmark["stats"]["min"] * 1e9)
    compared = project.python(*opprof, "compare", "times.json", str(session.document), "--fail-on=regressed")
    assert compared.returncode == 0
    assert f"{imported.node_id}: wall time " in compared.stdout
    assert project.python(*opprof, "compare", "times.json", "times.json", "-o", "c.json").returncode == 0
    tests = {test.node_id: test for test in read_comparison(project.folder / "c.json").tests}
    assert tests[imported.node_id].advisories[0].startswith("wall time ")
    assert {test.verdict for test in tests.values()} == {None}


@pytest.mark.slow
def test_ab_times_benchmarked_functions(project: Project) -> None:
    project.replace("pytest.ini", "-p opprof", "-p opprof -p benchmark")
    project.write("work.py", "def work():\n    return sum(range(1 * 40_000))\n")
    project.write(
        "test_it.py",
        """\
        import pytest
        import work

        @pytest.mark.profile(warmup=0, active=1)
        def test_timed(benchmark):
            benchmark(work.work)
        """,
    )
    project.git("init", "-q", "-b", "main")
    project.commit()
    project.replace("work.py", "1 *", "4 *")
    command = ("-m", "pytest_opprof.cli.main", "ab", "HEAD", "test_it.py", "--steps=3", "--processes=8")
    # Load on the machine must not decide: here a change of less than half does not count.
    told = project.python(*command, "--min-effect=50%", "--max-noise=99%")
    assert told.returncode == 1
    pytest.LineMatcher(told.stdout.splitlines()).fnmatch_lines(["test_timed *REGRESSED *"])
