"""How often a test is called to count its instructions, and which counts are kept."""

import gc
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from pytest_opprof.capture.instructions import Counted
from pytest_opprof.plugin.counting import MACHINE, PYTHON, CountedCalls

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 12) and sys.gettrace() is not None, reason="coverage holds the trace function"
)


def turns(times: int) -> None:
    for _ in range(times):
        pass


def called(calls: CountedCalls, work: Callable[[int], object]) -> int:
    number = 0
    for call in calls.calls():
        with call:
            work(number)
        number += 1
    return number


def test_two_calls_that_agree_are_enough() -> None:
    calls = CountedCalls(PYTHON)
    assert called(calls, lambda _: turns(5)) == 2
    assert len(calls.counts) == 1


def test_one_call_is_enough_beside_a_certified_count() -> None:
    first = CountedCalls(PYTHON)
    called(first, lambda _: turns(5))
    again = CountedCalls(PYTHON, expected=first.counts[0].totals)
    assert called(again, lambda _: turns(5)) == 1
    assert again.counts[0].rows == first.counts[0].rows


def test_calls_that_warm_up_may_differ() -> None:
    calls = CountedCalls(PYTHON)
    assert called(calls, lambda number: turns(50 if number == 0 else 5)) == 3
    assert len(calls.counts) == 1


def test_disagreeing_calls_are_kept_as_a_range() -> None:
    calls = CountedCalls(PYTHON)
    assert called(calls, turns) == 4
    assert len({counted.totals for counted in calls.counts}) == 4


def test_a_call_that_raises_leaves_a_reason() -> None:
    def fail(number: int) -> None:
        raise FileExistsError(number)

    calls = CountedCalls(PYTHON)
    assert called(calls, fail) == 1
    assert calls.counts == []
    assert calls.reason == "counted call 1 raised FileExistsError"


def test_an_interrupt_is_not_kept() -> None:
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        called(CountedCalls(PYTHON), stop)


def test_counted_calls_collect_no_garbage() -> None:
    seen: list[bool] = []
    called(CountedCalls(PYTHON), lambda _: seen.append(gc.isenabled()))
    assert seen == [False, False]
    assert gc.isenabled()


class Scripted:
    """Reports N instructions per call, which QEMU counts slightly differently each time."""

    def __init__(self, counts: list[int]) -> None:
        self._left = counts

    def start(self) -> None:
        pass

    def stop(self) -> Counted:
        return Counted(({"work, libwork.so": self._left.pop(0)},))


def scripted(*counts: int, expected: int | None = None) -> tuple[CountedCalls, int]:
    """The counts of a test whose calls take N machine instructions, and the number of calls."""
    counter = Scripted(list(counts))
    kind = replace(MACHINE, counter=lambda: counter)
    calls = CountedCalls(kind, expected=None if expected is None else (expected,))
    return calls, called(calls, lambda _: None)


def values(calls: CountedCalls) -> list[int]:
    return [counted.totals[0] for counted in calls.counts]


def test_short_calls_count_once_python_has_specialized_them() -> None:
    calls, number = scripted(*[900_000] * 4, *[800_000] * 6)
    assert number == 8
    assert values(calls) == [800_000]


def test_long_calls_need_no_warm_up() -> None:
    calls, number = scripted(900_000_000, 900_100_000, 1)
    assert number == 2
    assert values(calls) == [900_100_000]


def test_machine_instructions_near_the_baseline_need_one_call() -> None:
    calls, number = scripted(1_001_000, 1, expected=1_000_000)
    assert number == 1
    assert values(calls) == [1_001_000]


@pytest.mark.slow
def test_unsettled_machine_counts_are_a_range_without_warm_up() -> None:
    calls, number = scripted(*range(10_000, 1_000_000, 50_000))
    assert number == 12
    assert len(values(calls)) == 4
