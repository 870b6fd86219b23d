"""How often a test is called to count its instructions, and what is kept."""

import gc
import sys
from collections.abc import Callable

import pytest

from pytest_opprof.plugin.counting import CountedCalls

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
    calls = CountedCalls(is_wanted=True)
    assert called(calls, lambda _: turns(5)) == 2
    assert len(calls.counts) == 1


def test_one_call_is_enough_beside_a_certified_count() -> None:
    first = CountedCalls(is_wanted=True)
    called(first, lambda _: turns(5))
    again = CountedCalls(is_wanted=True, expected=first.counts[0].totals)
    assert called(again, lambda _: turns(5)) == 1
    assert again.counts[0].totals == first.counts[0].totals


def test_calls_that_warm_up_may_differ() -> None:
    calls = CountedCalls(is_wanted=True)
    assert called(calls, lambda number: turns(50 if number == 0 else 5)) == 3
    assert len(calls.counts) == 1


def test_what_never_agrees_is_kept_as_a_range() -> None:
    calls = CountedCalls(is_wanted=True)
    assert called(calls, turns) == 4
    assert len({counted.totals for counted in calls.counts}) == 4


def test_a_call_that_raises_leaves_a_reason() -> None:
    def fail(number: int) -> None:
        raise FileExistsError(number)

    calls = CountedCalls(is_wanted=True)
    assert called(calls, fail) == 1
    assert calls.counts == []
    assert calls.reason == "counted call 1 raised FileExistsError"


def test_an_interrupt_is_not_kept() -> None:
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        called(CountedCalls(is_wanted=True), stop)


def test_no_garbage_is_collected_meanwhile() -> None:
    seen: list[bool] = []
    called(CountedCalls(is_wanted=True), lambda _: seen.append(gc.isenabled()))
    assert seen == [False, False]
    assert gc.isenabled()


def test_nothing_is_called_unless_asked_for() -> None:
    calls = CountedCalls(is_wanted=False)
    assert called(calls, turns) == 0
    assert not calls.has_been_asked
