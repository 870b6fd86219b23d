"""The ``opprof`` fixture: tests that step themselves and read their recording."""

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project, Session

TESTS = """\
    import pytest
    from pytest_opprof import record_function

    def work(opprof):
        with opprof.record_function("work"):
            pass

    @pytest.mark.profile(wait=1, warmup=1, active=2)
    def test_as_planned(opprof):
        for _ in range(4):
            work(opprof)
            opprof.step()
        assert opprof.counts["work"] == 2

    @pytest.mark.profile(warmup=1, active=2)
    def test_counts_in_the_middle(opprof):
        seen = []
        for _ in range(3):
            work(opprof)
            seen.append(opprof.counts["work"])
            opprof.step()
        assert seen == [0, 0, 1]
        assert opprof.counts["work"] == 2
        assert opprof.counts["aten::item"] == opprof.counts["never"] == 0

    @pytest.mark.profile(warmup=0, active=1)
    def test_key_averages(opprof):
        work(opprof)
        with record_function("outer"):
            work(opprof)
        opprof.step()
        rows = {row.key: row.count for row in opprof.key_averages()}
        assert rows["work"] == 2 and rows["outer"] == 1
        assert "work" in opprof.key_averages(group_by_input_shape=True).table(sort_by="count")

    @pytest.mark.profile(warmup=0, active=1, repeat=2)
    def test_two_cycles(opprof):
        for calls in (1, 1):
            work(opprof)
            opprof.step()
        assert opprof.counts["work"] == 2

    @pytest.mark.profile(warmup=0, active=2)
    def test_more_cycles_than_asked_for(opprof):
        for _ in range(7):
            work(opprof)
            opprof.step()

    @pytest.mark.profile(warmup=1, active=3)
    def test_too_few_steps(opprof):
        opprof.step()

    @pytest.mark.profile(warmup=0, active=2, repeat=3)
    def test_too_few_cycles(opprof):
        for _ in range(5):
            opprof.step()

    @pytest.mark.profile
    def test_no_step(opprof):
        work(opprof)

    @pytest.mark.profile(active=1)
    def test_fails(opprof):
        opprof.step()
        work(opprof)
        assert opprof.counts["work"] == 5

    @pytest.fixture
    def stepper(opprof):
        yield opprof.step
        opprof.step()

    @pytest.mark.profile(warmup=0, active=1)
    def test_through_a_fixture(stepper):
        with record_function("work"):
            pass
        stepper()

    @pytest.mark.profile(warmup=0, active=2)
    def test_asked_for_in_passing(request):
        with record_function("work"):
            request.getfixturevalue("opprof").step()

    def test_unmarked(opprof):
        opprof.step()
        work(opprof)
        assert opprof.counts["work"] == 0
        assert list(opprof.key_averages()) == []
"""
ASYNC_TESTS = """\
    import asyncio, pytest

    @pytest.mark.asyncio
    @pytest.mark.profile(warmup=0, active=2)
    async def test_async(opprof):
        for _ in range(2):
            with opprof.record_function("work"):
                await asyncio.sleep(0)
            opprof.step()
"""
# Without a measurement, the tests' assertions on counts would fail.
NEED_NUMBERS = {"test_as_planned", "test_counts_in_the_middle", "test_key_averages", "test_two_cycles"}


@pytest.fixture(scope="module")
def stepping(make_project: MakeProject) -> tuple[Project, Session]:
    project = make_project("stepping")
    project.write("test_it.py", TESTS)
    project.write("test_async.py", ASYNC_TESTS)
    return project, project.pytest(plugins=("asyncio",))


def test_counts_and_averages_are_there_while_the_test_runs(stepping: tuple[Project, Session]) -> None:
    _, session = stepping
    assert {name for name, outcome in session.outcomes.items() if outcome != "passed"} == {"test_fails"}
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("test_as_planned", 2),
        ("test_counts_in_the_middle", 2),
        ("test_key_averages", 1),
        ("test_two_cycles", 2),
        ("test_more_cycles_than_asked_for", 6),
        ("test_through_a_fixture", 1),
        ("test_asked_for_in_passing", 2),
        ("test_async", 2),
    ],
)
def test_only_finished_active_steps_count(stepping: tuple[Project, Session], name: str, steps: int) -> None:
    test = stepping[1].result(name)
    assert test.measurement.reason == ""
    assert test.steps == steps
    per_step = 3 if name == "test_key_averages" else 1
    assert (test.totals["ranges.count"].low, test.totals["ranges.count"].high) == (per_step, per_step)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("test_too_few_steps", "the test finished 1 step, and no cycle of its schedule is complete: "),
        ("test_too_few_cycles", "the test finished 5 steps, and 2 of its 3 cycles are complete: "),
        ("test_no_step", "the test finished 0 steps, and no cycle of its schedule is complete: "),
    ],
)
def test_too_few_steps_are_an_error_of_the_measurement(
    stepping: tuple[Project, Session], name: str, reason: str
) -> None:
    test = stepping[1].result(name)
    assert test.measurement.status == "error"
    assert test.measurement.reason.startswith(reason)
    assert test.measurement.reason.endswith(
        "call opprof.step() at the end of each step, or give the marker a shorter schedule"
    )


def test_a_failed_test_has_no_numbers(stepping: tuple[Project, Session]) -> None:
    _, session = stepping
    assert session.result("test_fails").measurement.reason == "the test was failed"
    assert "assert 0 == 5" in session.failures["test_fails"]


@pytest.mark.slow
def test_errors_fail_only_saving_or_comparing_sessions(stepping: tuple[Project, Session]) -> None:
    project, _ = stepping
    quiet = project.pytest("test_it.py", "-k", "too_few_steps")
    assert quiet.exit_code == 0
    asked = project.pytest("test_it.py", "-k", "too_few_steps", "--opprof-save=main")
    assert asked.exit_code == pytest.ExitCode.TESTS_FAILED
    assert asked.outcomes == {"test_too_few_steps": "passed"}
    assert asked.banner.startswith("test_it.py::test_too_few_steps: the test finished 1 step")
    assert project.stored() == []


def test_switched_off_the_fixture_does_nothing(stepping: tuple[Project, Session]) -> None:
    project, _ = stepping
    session = project.pytest("--opprof=off", "test_it.py", writes_run=False)
    failed = {name for name, outcome in session.outcomes.items() if outcome != "passed"}
    assert failed == {*NEED_NUMBERS, "test_fails"}
    assert "= opprof =" not in session.stdout
    assert session.told == []


def test_only_mode_runs_marked_tests(stepping: tuple[Project, Session]) -> None:
    project, _ = stepping
    session = project.pytest("test_it.py", "--opprof=only", "-k", "planned or unmarked")
    assert session.outcomes == {"test_as_planned": "passed"}
    session.lines.fnmatch_lines(["*1 passed, 11 deselected*"])
