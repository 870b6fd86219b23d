"""The call phase of a benchmarking test, without a benchmark plugin."""

from collections.abc import Callable

import pytest

from pytest_opprof.capture.collector import Collector
from pytest_opprof.plugin.benchmark_stepping import BenchmarkStepping
from pytest_opprof.plugin.benchmarks import Benchmarked
from pytest_opprof.plugin.marker import request_of

MakeItem = Callable[[str], pytest.Item]
TEST = "@pytest.mark.profile\ndef test_it(): pass\n"


def stepping_of(item: pytest.Item) -> BenchmarkStepping:
    return BenchmarkStepping(request_of(item), fixture=object(), sources=frozenset({"ranges"}))


def test_its_own_steps_are_refused_and_the_first_reason_stays(make_item: MakeItem) -> None:
    stepping = stepping_of(make_item(TEST))
    stepping.step()
    assert stepping.problem is not None
    assert "leave out opprof.step()" in stepping.problem
    stepping.problem = "an earlier one"
    stepping.step()
    assert stepping.problem == "an earlier one"


def test_a_call_that_raises_leaves_no_window_open(make_item: MakeItem) -> None:
    item = make_item(TEST)
    stepping = stepping_of(item)
    calls: list[bool] = []

    def work() -> None:
        calls.append(Collector.instance().recording)
        if calls[-1]:
            raise FileExistsError

    with stepping.around(item):
        stepping.profile(Benchmarked(function=work, args=(), kwargs={}))
        assert not Collector.instance().recording
    assert calls[-1]
    assert stepping.problem is not None
    assert "profiled call 2 of the benchmarked function raised FileExistsError" in stepping.problem
