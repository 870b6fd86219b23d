"""Steps timed without a profiler, with real items and the real collector."""

import gc
import itertools
from collections.abc import Callable, Iterable, Iterator

import pytest

import pytest_opprof.plugin.timing as timing_module
from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.speed import Speed
from pytest_opprof.plugin.marker import request_of
from pytest_opprof.plugin.measurement import measured
from pytest_opprof.plugin.stepping import Stepping
from pytest_opprof.plugin.timing import QuietMachine, TimedSteps
from pytest_opprof.results.run import TestResult, Timing

MakeItem = Callable[[str], pytest.Item]
HEAD = (
    "from pytest_opprof import record_function\nfrom pytest_opprof.capture.collector import Collector\n"
    "OPEN = []\ndef look(): OPEN.append(Collector.instance().recording)\n"
)


@pytest.fixture(autouse=True)
def _no_window_left_open() -> Iterator[None]:
    yield
    assert not Collector.instance().recording


def run(item: pytest.Item, *, timed_steps: int, quiet: QuietMachine | None = None) -> Stepping:
    """Run only a test's call phase, as pytest would."""
    assert isinstance(item, pytest.Function)
    timed = TimedSteps(timed_steps, quiet=quiet)
    stepping = Stepping(request_of(item), sources=frozenset({"ranges"}), timed=timed, quiet=quiet)
    with stepping.around(item):
        item.obj(**({"opprof": stepping} if "opprof" in item.fixturenames else {}))
    return stepping


def windows_of(item: pytest.Item) -> list[bool]:
    """Whether a window was open in each call of `look`."""
    assert isinstance(item, pytest.Function)
    found: list[bool] = item.module.OPEN
    return found


def test_timed_calls_come_last_and_open_no_window(make_item: MakeItem) -> None:
    item = make_item(HEAD + "@pytest.mark.profile(warmup=1, active=2)\ndef test_it(): look()")
    stepping = run(item, timed_steps=4)
    assert windows_of(item) == [False, True, True, False, False, False, False]
    assert (len(stepping.timed.durations_ns), stepping.calls, stepping.problem) == (4, 3, None)
    assert all(duration > 0 for duration in stepping.timed.durations_ns)


def test_without_being_asked_nothing_is_timed(make_item: MakeItem) -> None:
    item = make_item(HEAD + "@pytest.mark.profile\ndef test_it(): look()")
    stepping = run(item, timed_steps=0)
    assert (len(windows_of(item)), stepping.timed.durations_ns, stepping.timed.reason) == (4, [], "")


def test_garbage_of_the_profiled_steps_is_collected(make_item: MakeItem) -> None:
    item = make_item(
        HEAD + "import weakref, gc\nclass Loop: pass\nALIVE = []\n"
        "@pytest.mark.profile(warmup=0, active=1)\ndef test_it():\n"
        "    ALIVE.append(weakref.ref(loop := Loop()))\n    loop.me = loop\n"
        "    OPEN.append(ALIVE[0]() is not None)"
    )
    gc.disable()
    try:
        run(item, timed_steps=1)
        assert windows_of(item) == [True, False]
        assert not gc.isenabled(), "as the test finds it"
    finally:
        gc.enable()


def test_a_timed_call_that_raises_takes_the_times_with_it(make_item: MakeItem) -> None:
    item = make_item(
        HEAD
        + "@pytest.mark.profile(warmup=0, active=1)\ndef test_it():\n    look()\n    assert len(OPEN) < 3"
    )
    stepping = run(item, timed_steps=5)
    assert stepping.problem is None, "what was profiled stays"
    assert stepping.timed.durations_ns == []
    assert stepping.timed.reason.startswith("cannot be called so often: timed call 2 raised AssertionError")


@pytest.mark.parametrize("error", ["KeyboardInterrupt()", "pytest.exit.Exception('enough')"])
def test_session_ending_exception_in_a_timed_call_propagates(make_item: MakeItem, error: str) -> None:
    item = make_item(
        HEAD + "@pytest.mark.profile(warmup=0, active=1)\ndef test_it():\n"
        f"    look()\n    if len(OPEN) == 2: raise {error}"
    )
    with pytest.raises((KeyboardInterrupt, pytest.exit.Exception)):
        run(item, timed_steps=3)


def test_a_test_that_could_not_be_measured_is_not_timed(make_item: MakeItem) -> None:
    item = make_item(
        HEAD + "@pytest.mark.profile(active=2)\ndef test_it():\n    look()\n    assert len(OPEN) < 2"
    )
    stepping = run(item, timed_steps=3)
    assert stepping.problem is not None
    assert (len(windows_of(item)), stepping.timed.durations_ns) == (2, [])


def test_self_stepping_test_times_steps_after_the_schedule(make_item: MakeItem) -> None:
    item = make_item(
        HEAD + "@pytest.mark.profile(warmup=1, active=2)\ndef test_it(opprof):\n"
        "    for _ in range(9):\n        look()\n        opprof.step()"
    )
    stepping = run(item, timed_steps=4)
    # a second cycle of the schedule would have started after the first
    assert windows_of(item) == [False, True, True, *[False] * 6]
    assert (len(stepping.timed.durations_ns), len(stepping.recordings)) == (4, 1)
    assert (stepping.timed.reason, stepping.problem) == ("", None)


def test_a_test_that_ends_with_its_schedule_has_no_times(make_item: MakeItem) -> None:
    item = make_item(
        HEAD + "@pytest.mark.profile(warmup=0, active=2)\ndef test_it(opprof):\n"
        "    opprof.step()\n    opprof.step()"
    )
    stepping = run(item, timed_steps=4)
    assert stepping.problem is None
    assert stepping.timed.reason.startswith(
        "the test ended with its schedule, so no steps were left to time: call opprof.step()"
    )
    result = measured(TestResult(node_id="t.py::test_it"), stepping)
    assert "wall_time" not in result.totals
    assert result.timing == Timing(steps=0, reason=stepping.timed.reason)


def test_the_measurement_holds_a_value_for_each_timed_step(make_item: MakeItem) -> None:
    stepping = run(make_item(HEAD + "@pytest.mark.profile\ndef test_it(): pass"), timed_steps=7)
    result = measured(TestResult(node_id="t.py::test_it"), stepping)
    assert result.timing == Timing(steps=7, planned=7)
    wall = result.totals["wall_time"]
    assert (wall.steps, wall.low) == (7, min(stepping.timed.durations_ns))
    assert result.totals["ranges.count"].steps == 3


# a probe's duration; the usual one is 1,000 ns
USUAL, SLOW, FAST = 1_000, 1_300, 830
STEP = "@pytest.mark.profile(warmup=0, active=1)\ndef test_it(): look()"


def quiet(probes: Iterable[int], *, budget_ns: int = 10**12) -> QuietMachine:
    """A machine whose probes take these times, then the usual time."""
    told = itertools.chain(probes, itertools.repeat(USUAL))
    ticks = itertools.count()
    return QuietMachine(
        Speed(1_000, probe=lambda: next(told)), budget_ns=budget_ns, clock=lambda: next(ticks)
    )


def ends(*probes: int) -> list[int]:
    """Probes of a test with one profiled step, then of timed steps that end with these."""
    return [USUAL, *itertools.chain.from_iterable((USUAL, probe) for probe in probes)]


def timing_of(item: pytest.Item, machine: QuietMachine, *, timed_steps: int) -> Timing:
    return measured(TestResult(node_id="t.py::t"), run(item, timed_steps=timed_steps, quiet=machine)).timing


def test_a_quiet_machine_times_no_more_than_was_asked_for(make_item: MakeItem) -> None:
    timing = timing_of(make_item(HEAD + STEP), quiet([]), timed_steps=12)
    assert timing == Timing(steps=12, planned=12, probe_ns=USUAL)


def test_a_busy_machine_times_until_enough_steps_were_undisturbed(make_item: MakeItem) -> None:
    timing = timing_of(make_item(HEAD + STEP), quiet(ends(*[SLOW] * 7)), timed_steps=5)
    assert timing == Timing(steps=17, planned=5, disturbed=7, probe_ns=USUAL)


@pytest.mark.parametrize(("wanted", "steps"), [(0, 0), (1, 17)])
def test_busy_machine_adds_steps_only_if_requested(make_item: MakeItem, wanted: int, steps: int) -> None:
    timing = timing_of(make_item(HEAD + STEP), quiet(ends(*[SLOW] * 7)), timed_steps=wanted)
    assert (timing.steps, timing.planned) == (steps, wanted)


def test_no_test_is_timed_more_often_than_a_document_takes(
    make_item: MakeItem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing_module, "MOST_TIMED_STEPS", 8)
    timing = timing_of(make_item(HEAD + STEP), quiet(ends(*[SLOW] * 20)), timed_steps=5)
    assert timing.steps == 8


def test_extra_timing_has_a_time_budget(make_item: MakeItem) -> None:
    timing = timing_of(make_item(HEAD + STEP), quiet(itertools.repeat(SLOW), budget_ns=50), timed_steps=5)
    assert timing == Timing(steps=5, planned=5, disturbed=5, probe_ns=SLOW)


def test_a_step_begins_when_the_machine_is_calm(make_item: MakeItem) -> None:
    """The profiled one, too."""
    taken: list[int] = []

    def probe() -> Iterator[int]:
        for took in (SLOW, SLOW, USUAL, SLOW, USUAL, USUAL):
            taken.append(took)
            yield took

    timing = timing_of(make_item(HEAD + STEP), quiet(probe()), timed_steps=1)
    assert taken[:3] == [SLOW, SLOW, USUAL]
    assert (len(taken), timing.disturbed) == (6, 0)


def test_steps_of_a_boosted_clock_do_not_count(make_item: MakeItem) -> None:
    timing = timing_of(make_item(HEAD + STEP), quiet(ends(FAST, USUAL, FAST)), timed_steps=12)
    assert timing == Timing(steps=10, planned=12, probe_ns=USUAL)


def test_a_clock_that_is_always_boosted_counts(make_item: MakeItem) -> None:
    timing = timing_of(make_item(HEAD + STEP), quiet(itertools.repeat(FAST)), timed_steps=4)
    assert timing == Timing(steps=10, planned=4, probe_ns=FAST)


def test_extra_call_may_raise(make_item: MakeItem) -> None:
    item = make_item(
        HEAD
        + "@pytest.mark.profile(warmup=0, active=1)\ndef test_it():\n    look()\n    assert len(OPEN) < 5"
    )
    timing = timing_of(item, quiet(itertools.repeat(SLOW), budget_ns=10**6), timed_steps=3)
    assert timing == Timing(steps=3, planned=3, disturbed=3, probe_ns=SLOW)


def test_a_test_that_steps_itself_is_timed_for_longer(make_item: MakeItem) -> None:
    item = make_item(
        HEAD + "@pytest.mark.profile(warmup=0, active=1)\ndef test_it(opprof):\n"
        "    for _ in range(30):\n        look()\n        opprof.step()"
    )
    timing = timing_of(item, quiet(ends(*[SLOW] * 3)), timed_steps=5)
    assert timing == Timing(steps=13, planned=5, disturbed=3, probe_ns=USUAL)


def test_no_more_steps_are_timed_than_a_document_holds(make_item: MakeItem) -> None:
    timing = timing_of(make_item(HEAD + STEP), quiet(ends(*[SLOW] * 2_000)), timed_steps=5)
    assert timing.steps == 1_000
