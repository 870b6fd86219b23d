"""The exact gate."""

from dataclasses import replace

import pytest
from hypothesis import given
from support.documents.judged_tests import compared, verdicts
from support.documents.strategies import measured, results, simple_run, simple_test

from pytest_opprof.compare.comparison import Change
from pytest_opprof.compare.gates import parse_gates
from pytest_opprof.compare.sessions import Policy, compare_test
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import VIEWS_COUNT
from pytest_opprof.results.run import Measurement, MeasurementStatus, Outcome, TestResult
from pytest_opprof.results.samples import Samples


@given(measured())
def test_comparing_with_itself_passes(test: TestResult) -> None:
    found = compared(test, test)
    assert found.verdict is Verdict.PASS
    assert found.changes == ()


@given(results())
def test_no_test_regresses_against_itself(test: TestResult) -> None:
    assert compared(test, replace(test, limits={})).verdict is not Verdict.REGRESSED


@given(measured(), measured())
def test_swapping_sides_turns_rises_into_falls(one: TestResult, other: TestResult) -> None:
    def rises(changes: tuple[Change, ...], sign: int) -> dict[tuple[str | None, str], int]:
        return {(change.op, change.metric): sign * change.rise for change in changes}

    there, back = compared(one, other), compared(other, one)
    assert rises(there.changes, 1) == rises(back.changes, -1)
    if there.verdict is Verdict.IMPROVED:
        assert back.verdict in {Verdict.REGRESSED, Verdict.CHANGED}


def test_risen_total_regresses() -> None:
    found = compared(simple_test({"aten::mul": 4}), simple_test({"aten::mul": 5}))
    assert found.verdict is Verdict.REGRESSED
    assert found.reason == "1 more op in each step than main (same in 3 of 3 steps, certified in 2 processes)"
    assert verdicts(found) == {"ops.count": Verdict.REGRESSED, "aten::mul": Verdict.REGRESSED}


def test_watched_op_regresses_under_a_falling_total() -> None:
    found = compared(simple_test({"aten::mul": 9}), simple_test({"aten::mul": 1, "aten::item": 1}))
    assert found.verdict is Verdict.REGRESSED
    assert found.reason.startswith("1 more call of aten::item in each step than main")
    assert verdicts(found)["ops.count"] is Verdict.IMPROVED


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        # another allocator is not a regression, but more allocations are
        ({"aten::empty_strided": 10, "aten::mul": 30}, {"aten::empty": 1, "aten::mul": 1}, Verdict.CHANGED),
        ({"aten::empty_strided": 1, "aten::mul": 30}, {"aten::empty": 2, "aten::mul": 1}, Verdict.REGRESSED),
        # ops that call an allocator are not allocators: they do not offset another one
        ({"aten::empty_like": 9, "aten::mul": 30}, {"aten::empty": 1, "aten::mul": 1}, Verdict.REGRESSED),
        # conversions without effect do not offset a copy
        ({"aten::to": 9, "aten::mul": 30}, {"aten::copy_": 1, "aten::mul": 1}, Verdict.REGRESSED),
        ({"aten::copy_": 9, "aten::mul": 30}, {"aten::clone": 1, "aten::copy_": 1}, Verdict.CHANGED),
        # one family does not offset another
        ({"aten::empty": 9, "aten::mul": 30}, {"aten::item": 1, "aten::mul": 1}, Verdict.REGRESSED),
    ],
)
def test_watched_ops_are_judged_as_families(
    before: dict[str, int], after: dict[str, int], verdict: Verdict
) -> None:
    found = compared(simple_test(before), simple_test(after))
    assert found.verdict is verdict


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ({"aten::relu_": 3}, {"aten::relu": 3}, Verdict.REGRESSED),
        ({"aten::add_": 3, "aten::add": 1}, {"aten::add_": 1, "aten::add": 3}, Verdict.REGRESSED),
        ({"aten::relu": 3}, {"aten::relu_": 3}, Verdict.CHANGED),
        # one op in place of several is less work
        ({"aten::mul_": 3}, {"aten::mul": 1}, Verdict.CHANGED),
        ({"aten::mul_": 3}, {"aten::add": 3}, Verdict.CHANGED),
        # another op runs in place instead
        ({"aten::add_": 3, "aten::neg": 3}, {"aten::add": 3, "aten::neg_": 3}, Verdict.CHANGED),
    ],
)
def test_an_in_place_op_that_allocates_now_regresses(
    before: dict[str, int], after: dict[str, int], verdict: Verdict
) -> None:
    assert compared(simple_test(before), simple_test(after)).verdict is verdict


@pytest.mark.parametrize(
    ("gate", "told"),
    [
        ("50%", "1 more op in each step than main, within the tolerance of 50%"),
        ("advisory", "1 more op in each step than main, not gated"),
        ("off", "other ops than main, but no gated total rose"),
    ],
)
def test_a_total_that_rose_without_failing_is_told(gate: str, told: str) -> None:
    found = compared(simple_test({"aten::mul": 4}), simple_test({"aten::mul": 5}, gates={"ops.count": gate}))
    assert (found.verdict, found.reason) == (Verdict.CHANGED, told)


def test_an_op_that_was_asked_for_is_judged_by_itself() -> None:
    policy = Policy(command_line=parse_gates({"aten::empty.count": "exact"}, where="here"))
    before, after = {"aten::empty_strided": 10, "aten::mul": 30}, {"aten::empty": 1, "aten::mul": 1}
    found = compared(simple_test(before), simple_test(after), policy=policy)
    assert found.verdict is Verdict.REGRESSED


def test_a_family_that_may_have_lost_rows_pays_for_nothing() -> None:
    before, after = {"aten::empty": 1, "aten::empty_strided": 10, "aten::mul": 30}, {"aten::empty": 2}
    base, head = simple_test(before), simple_test(after)
    assert compared(base, head).verdict is Verdict.CHANGED
    assert compared(base, replace(head, ops_omitted=1)).verdict is Verdict.REGRESSED


def test_fusion_is_changed_not_regressed() -> None:
    found = compared(simple_test({"aten::mul": 10}), simple_test({"aten::addcmul": 1}))
    assert found.verdict is Verdict.CHANGED
    assert verdicts(found)["aten::addcmul"] is Verdict.CHANGED


def test_fewer_ops_improve() -> None:
    found = compared(simple_test({"aten::mul": 10}), simple_test({"aten::mul": 8}))
    assert found.verdict is Verdict.IMPROVED
    assert found.reason.startswith("2 fewer ops in each step than main")


def test_uncertified_baseline_is_reported() -> None:
    found = compared(simple_test({"aten::mul": 4}, processes=1), simple_test({"aten::mul": 5}))
    assert found.verdict is Verdict.REGRESSED
    assert "not certified" in found.reason


def test_asked_for_op_blocks() -> None:
    base, head = simple_test({"aten::mul": 4, "aten::add": 4}), simple_test({"aten::mul": 5, "aten::add": 1})
    assert compared(base, head).verdict is Verdict.CHANGED
    strict = replace(head, gates={"aten::mul.count": "exact"})
    assert compared(base, strict).verdict is Verdict.REGRESSED
    loose = replace(head, gates={"aten::mul.count": "25%"})
    assert compared(base, loose).verdict is Verdict.CHANGED


def test_gate_switched_off_is_silent() -> None:
    base, head = simple_test({"aten::mul": 4}), simple_test({"aten::mul": 5}, gates={"ops.count": "off"})
    assert compared(base, head).verdict is Verdict.CHANGED


def test_command_line_overrules_the_marker() -> None:
    base, head = simple_test({"aten::mul": 4}), simple_test({"aten::mul": 5}, gates={"ops.count": "exact"})
    off = Policy(command_line=parse_gates({"ops.count": "off"}, where="x"))
    ini = Policy(ini=parse_gates({"ops.count": "off"}, where="x"))
    assert compared(base, head, policy=off).verdict is Verdict.CHANGED
    assert compared(base, head, policy=ini).verdict is Verdict.REGRESSED


def test_times_never_block() -> None:
    slow = {"total.self_cpu_time_total": Samples.constant(10**9, steps=3)}
    base = simple_test({"aten::mul": 4})
    head = replace(base, totals={**base.totals, **slow}, gates={"total.self_cpu_time_total": "exact"})
    found = compared(base, head)
    assert found.verdict is Verdict.PASS
    assert any("self CPU 4.0 µs -> 1.0 s" in advisory for advisory in found.advisories)


def test_unchanged_zero_is_not_a_pass_for_ungated_work() -> None:
    ranges = simple_test({"forward": 4})
    uneven = replace(ranges, totals={**ranges.totals, "ranges.count": Samples.of([1, 2, 3])})
    assert compared(uneven, uneven).verdict is None
    off = replace(ranges, gates={"ranges.count": "off"})
    found = compared(off, off)
    assert (found.verdict, found.reason) == (None, "no gate covers what it runs")
    own = replace(off, gates={"ranges.count": "off", "forward.count": "exact"})
    assert compared(own, own).verdict is Verdict.PASS
    assert compared(simple_test({}), simple_test({})).verdict is Verdict.PASS


def test_new_range_is_a_name_not_a_regression() -> None:
    base = simple_test({"load": 2})
    assert compared(base, simple_test({"load": 2, "parse": 3})).verdict is Verdict.CHANGED
    assert compared(base, simple_test({"load": 3})).verdict is Verdict.REGRESSED
    strict = simple_test({"load": 2, "parse": 3}, gates={"ranges.count": "exact"})
    assert compared(base, strict).verdict is Verdict.REGRESSED


def test_steps_of_both_sides_are_weighed() -> None:
    one = simple_test({"aten::mul": 2}, steps=2)
    other = simple_test({"aten::mul": 2}, steps=5)
    assert compared(one, other).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("outcome", "status", "verdict"),
    [
        (Outcome.PASSED, MeasurementStatus.ERROR, Verdict.ERROR),
        (Outcome.PASSED, MeasurementStatus.INCONCLUSIVE, Verdict.INCONCLUSIVE),
        (Outcome.SKIPPED, MeasurementStatus.NOT_RUN, None),
        (Outcome.FAILED, MeasurementStatus.OK, None),
    ],
)
def test_unmeasured_test_is_not_judged(
    outcome: Outcome, status: MeasurementStatus, verdict: Verdict | None
) -> None:
    base = simple_test({"aten::mul": 4}, limits={"ops.count": 0})
    head = replace(base, outcome=outcome, measurement=Measurement(status=status, reason="because"))
    assert compared(base, head).verdict is verdict


def test_no_steps_are_inconclusive() -> None:
    base = simple_test({"aten::mul": 4})
    assert compared(base, TestResult(node_id=base.node_id)).verdict is Verdict.INCONCLUSIVE


def test_base_without_numbers_is_inconclusive() -> None:
    head = simple_test({"aten::mul": 4})
    broken = Measurement(status=MeasurementStatus.ERROR, reason="cannot be repeated")
    found = compared(replace(head, measurement=broken), head)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason == "main has no numbers: cannot be repeated"


def test_broken_limit_comes_first() -> None:
    base = simple_test({"aten::mul": 4})
    head = simple_test({"aten::mul": 5, "aten::item": 1}, limits={"aten::item.count": 0, "ops.count": 2})
    found = compared(base, head)
    assert found.verdict is Verdict.REGRESSED
    assert found.reason.startswith(
        "aten::item.count is 1 in each step, but the limit is <= 0 (and 1 more limit); 2 more ops in each step"
    )


def test_limits_hold_without_a_baseline() -> None:
    head = simple_test({"aten::item": 1}, limits={"aten::item.count": 0})
    found = compare_test(head, None, base=None, head=simple_run(head))
    assert found.verdict is Verdict.REGRESSED
    kept = replace(head, limits={"aten::item.count": 1})
    assert compare_test(kept, None, base=None, head=simple_run(kept)).verdict is Verdict.PASS
    unlimited = replace(head, limits={})
    assert compare_test(unlimited, None, base=None, head=simple_run(unlimited)).verdict is None


def test_removed_watched_op_improves_against_an_older_base() -> None:
    base = simple_test({"aten::item": 2, "aten::mul": 1})
    head = simple_test({"aten::mul": 1})
    views = Samples.constant(0, steps=head.steps)
    found = compared(base, replace(head, totals={**head.totals, VIEWS_COUNT.name: views}))
    (item,) = (change for change in found.changes if change.op == "aten::item")
    assert item.verdict is Verdict.IMPROVED
