"""What a run's record keeps and leaves out."""

import json
from dataclasses import replace

from hypothesis import given
from support.documents.histories import run_on_day
from support.documents.strategies import runs, simple_run, simple_test

from pytest_opprof.history.record import counts_definition, counts_from, digest_of, record_of
from pytest_opprof.kinds import OpKind
from pytest_opprof.results.run import CaptureStats, CarriedFrom, Outcome, Run
from pytest_opprof.results.samples import Samples


def test_same_counts_have_the_same_definition() -> None:
    (one, _), (other, _) = (record_of(run_on_day(day), committed=None).tests[0] for day in (1, 2))
    (more, _) = record_of(run_on_day(1, mul=3), committed=None).tests[0]
    assert one == other != more
    assert one.digest == digest_of(one.text)


def test_times_are_values_of_the_run() -> None:
    slow = simple_test({"aten::mul": 1}, totals={"total.self_cpu_time_total": Samples.of([9, 7, 8])})
    fast = simple_test({"aten::mul": 1}, totals={"total.self_cpu_time_total": Samples.of([5, 4, 6])})
    first, second = (record_of(simple_run(test), committed=None).tests[0] for test in (slow, fast))
    assert first[0] == second[0], "times are not part of what is exact"
    assert (first[1], second[1]) == ((7,), (4,)), "the least of the steps"


def test_unusable_and_partial_tests_are_left_out() -> None:
    good = simple_test({"aten::mul": 1}, node_id="t.py::good")
    run = simple_run(
        good,
        simple_test({}, node_id="t.py::failed", outcome=Outcome.FAILED),
        simple_test({}, node_id="t.py::dropped", capture=CaptureStats(dropped=1)),
        simple_test({}, node_id="t.py::sampled", capture=CaptureStats(sampled_ppm=10)),
        simple_test(
            {}, node_id="t.py::carried", carried_from=CarriedFrom(run_id="x", created=run_on_day(0).created)
        ),
    )
    ((definition, _),) = record_of(run, committed=None).tests
    assert json.loads(definition.text)["node_id"] == "t.py::good"


def test_rows_of_one_name_are_summed() -> None:
    test = simple_test({"aten::mul": 2})
    (row,) = test.ops
    twice = replace(test, ops=(row, replace(row, kind=OpKind.CALL), replace(row, background=True)))
    ((definition, _),) = record_of(simple_run(twice), committed=None).tests
    assert counts_from(json.loads(definition.text)).ops["aten::mul"]["count"].low == 4


def test_varying_counts_keep_their_range() -> None:
    test = simple_test({}, totals={"ops.count": Samples.of([1, 5, 3])})
    ((definition, _),) = record_of(simple_run(test), committed=None).tests
    kept = counts_from(json.loads(definition.text)).totals["ops.count"]
    assert (kept.low, kept.high, kept.total, kept.steps) == (1, 5, 9, 3)


@given(run=runs())
def test_counts_survive_json(run: Run) -> None:
    for definition, _ in record_of(run, committed=None).tests:
        again = counts_from(json.loads(definition.text))
        assert counts_definition(again) == definition
