"""A marked test's call phase, with the real collector and without a session around it."""

import asyncio
import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from pytest_opprof.capture.collector import Collector
from pytest_opprof.plugin.marker import request_of
from pytest_opprof.plugin.measurement import measured
from pytest_opprof.plugin.stepping import Stepping
from pytest_opprof.results.run import MeasurementStatus, TestResult

MakeItem = Callable[[str], pytest.Item]
RANGES = frozenset({"ranges"})
HEAD = "from pytest_opprof import record_function\nCALLS = []\n"

# Called for all four calls when the marker is read, and again during the calls: it breaks after the second.
BREAKS_LATER = (
    HEAD
    + """\
ASKED = []
def plan(step):
    ASKED.append(step)
    if len(ASKED) == 7:
        raise RuntimeError("asked too often")
    return A.RECORD_AND_SAVE if step == 3 else A.RECORD
@pytest.mark.profile(schedule=plan)
"""
)


@pytest.fixture(autouse=True)
def _no_window_left_open() -> Iterator[None]:
    yield
    assert not Collector.instance().recording


def run(item: pytest.Item, *, fails: Callable[[Stepping], bool] | None = None) -> Stepping:
    """Run only a test's call phase, as pytest would."""
    assert isinstance(item, pytest.Function)
    stepping = Stepping(request_of(item), sources=RANGES, fails=fails)
    was_running = []
    with stepping.around(item):
        was_running.append(stepping.is_running)
        result = item.obj()
        if inspect.iscoroutine(result):
            asyncio.run(result)
    assert [*was_running, stepping.is_running] == [True, False]
    return stepping


def counts(stepping: Stepping, name: str) -> list[tuple[int, ...]]:
    """How often a range ran in each step, cycle by cycle."""
    return [
        group.steps["count"]
        for recording in stepping.recordings
        for group in recording.groups()
        if group.name == name
    ]


def test_active_steps_are_recorded_and_others_are_not(make_item: MakeItem) -> None:
    stepping = run(
        make_item(
            HEAD + "@pytest.mark.profile(wait=1, warmup=1, active=2, repeat=2)\ndef test_it():\n"
            "    CALLS.append(0)\n    for _ in CALLS:\n        with record_function('work'): pass"
        )
    )
    assert stepping.problem is None
    assert stepping.calls == 8
    assert counts(stepping, "work") == [(3, 4), (7, 8)]


def test_coroutines_are_awaited_each_time(make_item: MakeItem) -> None:
    stepping = run(
        make_item(
            HEAD + "import asyncio\n@pytest.mark.profile\nasync def test_it():\n"
            "    with record_function('work'): await asyncio.sleep(0)"
        )
    )
    assert (stepping.problem, counts(stepping, "work")) == (None, [(1, 1, 1)])


def test_a_later_failure_is_kept_for_the_measurement(make_item: MakeItem) -> None:
    stepping = run(
        make_item(
            HEAD + "@pytest.mark.profile(warmup=0, active=2, repeat=2)\ndef test_it():\n"
            "    CALLS.append(0)\n    assert len(CALLS) < 4"
        )
    )
    assert stepping.problem is not None
    assert stepping.problem.startswith("cannot be repeated: call 4 raised AssertionError. ")
    assert len(stepping.recordings) == 1, "a cycle that broke is none"


@pytest.mark.parametrize(
    "error", ["KeyboardInterrupt", "pytest.exit.Exception('now')"], ids=["interrupt", "exit"]
)
def test_session_ending_exceptions_propagate(make_item: MakeItem, error: str) -> None:
    item = make_item(
        HEAD + f"@pytest.mark.profile(warmup=0)\ndef test_it():\n"
        f"    CALLS.append(0)\n    if len(CALLS) == 2: raise {error}"
    )
    with pytest.raises((KeyboardInterrupt, pytest.exit.Exception)):
        run(item)


def test_a_failure_worth_it_is_measured_once_more(make_item: MakeItem) -> None:
    seen: list[list[tuple[int, ...]]] = []

    def fails(stepping: Stepping) -> bool:
        seen.append(counts(stepping, "work"))
        return True

    stepping = run(
        make_item(
            HEAD + "@pytest.mark.profile(warmup=1, active=2)\ndef test_it():\n"
            "    CALLS.append(0)\n    for _ in range(2 if len(CALLS) < 4 else 1):\n"
            "        with record_function('work'): pass"
        ),
        fails=fails,
    )
    assert seen == [[(2, 2)]]
    assert stepping.again is not None
    assert counts(stepping.again, "work") == [(1, 1)]
    test = measured(TestResult(node_id="a.py::test_it"), stepping)
    assert test.unstable == ("ranges.count", "work.count")
    assert (test.totals["ranges.count"].low, test.totals["ranges.count"].high) == (1, 2)


def test_a_second_look_that_fails_changes_nothing(make_item: MakeItem) -> None:
    stepping = run(
        make_item(
            HEAD + "@pytest.mark.profile(warmup=0, active=2)\ndef test_it():\n"
            "    CALLS.append(0)\n    assert len(CALLS) < 3\n    with record_function('work'): pass"
        ),
        fails=lambda _: True,
    )
    assert stepping.problem is None
    assert stepping.again is not None
    assert stepping.again.problem is not None
    test = measured(TestResult(node_id="a.py::test_it"), stepping)
    assert (test.measurement.status, test.unstable) == (MeasurementStatus.OK, ())


def test_failed_measurement_gets_no_second_look(make_item: MakeItem) -> None:
    stepping = run(
        make_item(
            HEAD + "@pytest.mark.profile\ndef test_it():\n    CALLS.append(0)\n    assert len(CALLS) < 2"
        ),
        fails=lambda _: pytest.fail("nobody should ask"),
    )
    assert stepping.again is None


def test_fewer_calls_than_planned_are_an_error(make_item: MakeItem) -> None:
    item = make_item(HEAD + "@pytest.mark.profile\ndef test_it(): pass")
    stepping = Stepping(request_of(item), sources=RANGES)
    with stepping.around(item):
        pass  # as if another plugin ran something else in its place
    assert stepping.problem == "the test was called 0 of 4 times"


def test_odd_schedule_does_not_warn(make_item: MakeItem) -> None:
    item = make_item(
        HEAD + "@pytest.mark.profile(schedule=lambda step: [A.RECORD, A.NONE, A.RECORD_AND_SAVE][step])\n"
        "def test_it():\n    with record_function('work'): pass"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stepping = run(item)
    assert (stepping.problem, counts(stepping, "work")) == (None, [(1,), (1,)])


def test_a_schedule_that_raises_is_a_problem_of_the_measurement(make_item: MakeItem) -> None:
    item = make_item(
        HEAD + "@pytest.mark.profile(schedule=lambda step: [A.NONE, A.RECORD_AND_SAVE][step])\n"
        "def test_it(opprof):\n    opprof.step()\n    opprof.step()"
    )
    assert isinstance(item, pytest.Function)
    stepping = Stepping(request_of(item), sources=RANGES)
    with stepping.around(item):
        item.obj(opprof=stepping)
    assert stepping.problem == "the profiler failed: IndexError: list index out of range"


def test_internal_error_stops_further_calls(make_item: MakeItem) -> None:
    item = make_item(BREAKS_LATER + "def test_it():\n    CALLS.append(0)\n    assert len(CALLS) < 3")
    assert run(item).problem == "the profiler failed: RuntimeError: asked too often"


def test_a_fault_of_ours_hides_no_fault_of_the_test(make_item: MakeItem) -> None:
    item = make_item(BREAKS_LATER + "def test_it():\n    CALLS.append(0)\n    assert len(CALLS) < 2")
    stepping = run(item)
    assert stepping.problem is not None
    assert stepping.problem.startswith("cannot be repeated: call 2 raised AssertionError")


def test_activities_restrict_the_sources(make_item: MakeItem) -> None:
    session = frozenset({"ranges", "ops", "cuda-if-used"})
    unsaid = request_of(make_item(HEAD + "@pytest.mark.profile\ndef test_it(): pass"))
    assert Stepping(unsaid, sources=session).sources == session
    cpu = replace(unsaid, names_activities=True)
    assert Stepping(cpu, sources=session).sources == {"ranges", "ops"}
    cuda = replace(cpu, activities=("cuda",))
    assert Stepping(cuda, sources=RANGES | {"ops"}).sources == RANGES | {"cuda"}


def test_result_is_final_unless_something_was_added(make_item: MakeItem) -> None:
    stepping = run(make_item("@pytest.mark.profile\ndef test_it(): pass\n"))
    assert stepping.is_as_seen
    stepping.compile_cache = "warm"
    assert not stepping.is_as_seen


def test_a_measurement_that_failed_is_not_looked_at_again(make_item: MakeItem) -> None:
    item = make_item(
        "CALLS = []\n@pytest.mark.profile\ndef test_it():\n    CALLS.append(1)\n    assert len(CALLS) < 3\n"
    )
    stepping = run(item, fails=lambda _: pytest.fail("nobody should ask"))
    assert stepping.problem is not None
    assert not stepping.is_repeatable
