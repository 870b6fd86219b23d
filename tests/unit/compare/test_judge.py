"""The exact gate."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from support.documents.strategies import calling, measured, results, simple_run, simple_test

from pytest_opprof.compare.comparison import Change, TestComparison
from pytest_opprof.compare.gates import parse_gates
from pytest_opprof.compare.sessions import Policy, compare_runs, compare_test
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import VIEWS_COUNT
from pytest_opprof.results.run import (
    CaptureStats,
    Environment,
    Measurement,
    MeasurementStatus,
    OpRow,
    Outcome,
    TestResult,
    TreeNode,
)
from pytest_opprof.results.samples import Samples

TORCH_212 = Environment(fingerprint={"python": "3.11", "torch": "2.12.0"})


def compared(
    base: TestResult,
    head: TestResult,
    *,
    policy: Policy | None = None,
    environment: Environment | None = None,
) -> TestComparison:
    before = simple_run(base, name="main")
    if environment is not None:
        before = replace(before, environment=environment)
    return compare_test(head, base, base=before, head=simple_run(head), policy=policy)


def verdicts(found: TestComparison) -> dict[str, Verdict | None]:
    return {change.op or change.metric: change.verdict for change in found.changes}


def with_counts(test: TestResult, name: str, count: Samples) -> TestResult:
    """The test with another count of one op, and the total that belongs to it."""
    rows = tuple(row.with_metrics(count=count) if row.name == name else row for row in test.ops)
    others = Samples.constant(0, steps=test.steps)
    for row in rows:
        if row.kind is OpKind.OP:
            others = others.plus(row.count)
    return replace(test, ops=rows, totals={**test.totals, "ops.count": others})


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
        # Which allocator ran is nobody's regression, until there are more of them.
        ({"aten::empty_strided": 10, "aten::mul": 30}, {"aten::empty": 1, "aten::mul": 1}, Verdict.CHANGED),
        ({"aten::empty_strided": 1, "aten::mul": 30}, {"aten::empty": 2, "aten::mul": 1}, Verdict.REGRESSED),
        # Those that call an allocator are none themselves: they make room for no further one.
        ({"aten::empty_like": 9, "aten::mul": 30}, {"aten::empty": 1, "aten::mul": 1}, Verdict.REGRESSED),
        # Conversions that convert nothing do not pay for a copy.
        ({"aten::to": 9, "aten::mul": 30}, {"aten::copy_": 1, "aten::mul": 1}, Verdict.REGRESSED),
        ({"aten::copy_": 9, "aten::mul": 30}, {"aten::clone": 1, "aten::copy_": 1}, Verdict.CHANGED),
        # One family does not pay for another.
        ({"aten::empty": 9, "aten::mul": 30}, {"aten::item": 1, "aten::mul": 1}, Verdict.REGRESSED),
    ],
)
def test_watched_ops_are_judged_as_families(
    before: dict[str, int], after: dict[str, int], verdict: Verdict
) -> None:
    found = compared(simple_test(before), simple_test(after))
    assert found.verdict is verdict


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


def in_background(test: TestResult, calls: int, *, kind: OpKind = OpKind.OP) -> TestResult:
    """The test with so many calls in all, on a thread from before its steps."""
    spread = Samples(steps=test.steps, total=calls, low=0, high=calls)
    row = OpRow(
        name="aten::mul",
        kind=kind,
        background=True,
        metrics={"count": spread},
    )
    return replace(test, ops=(*test.ops, row))


@pytest.mark.parametrize(
    ("before", "after", "kind", "verdict"),
    [
        (0, 6, OpKind.OP, Verdict.CHANGED),
        (6, 7, OpKind.OP, Verdict.CHANGED),
        (6, 6, OpKind.OP, Verdict.IMPROVED),
        (6, 0, OpKind.OP, Verdict.IMPROVED),
        (0, 6, OpKind.CALL, Verdict.IMPROVED),
    ],
)
def test_fewer_ops_beside_more_in_the_background_are_no_improvement(
    before: int, after: int, kind: OpKind, verdict: Verdict
) -> None:
    base = in_background(simple_test({"aten::mul": 10}), before, kind=kind)
    found = compared(base, in_background(simple_test({"aten::mul": 8}), after, kind=kind))
    assert found.verdict is verdict
    assert found.reason.startswith("2 fewer ops in each step than main")
    # It gates nothing: neither here nor where nothing fell.
    assert compared(base, in_background(simple_test({"aten::mul": 10}), after)).verdict is Verdict.PASS


def test_the_background_is_compared_by_the_step() -> None:
    base, head = simple_test({"aten::mul": 10}), simple_test({"aten::mul": 8}, steps=5)
    assert compared(in_background(base, 6), in_background(head, 10)).verdict is Verdict.IMPROVED
    found = compared(in_background(base, 6), in_background(head, 11))
    assert found.verdict is Verdict.CHANGED
    assert [change.rise for change in found.changes if change.background] == [1]


def test_uncertified_baseline_is_said() -> None:
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


def test_uncertain_baseline_is_advisory() -> None:
    base = with_counts(simple_test({"aten::mul": 4}), "aten::mul", Samples.of([4, 5, 4]))
    found = compared(base, simple_test({"aten::mul": 5}))
    assert found.verdict is None
    assert found.changes[0].verdict is None
    assert found.reason == "nothing was the same in every step, so nothing could be judged"
    fewer = compared(base, simple_test({"aten::mul": 3}))
    assert fewer.verdict is None
    assert fewer.changes[0].verdict is None
    assert "ops, total: the baseline varies: 4 to 5; now 3: not gated" in fewer.advisories


UNEVEN = with_counts(simple_test({"aten::mul": 4}), "aten::mul", Samples.of([4, 6, 4]))
# Another process had another range, or there was no other.
UNSURE = (replace(UNEVEN, unstable=("ops.count", "aten::mul.count")), replace(UNEVEN, processes=1))


@pytest.mark.parametrize("now", [Samples.constant(7, steps=3), Samples.of([7, 9, 8])], ids=["even", "uneven"])
def test_more_in_each_step_than_an_uncertain_base_ever_had_regresses(now: Samples) -> None:
    found = compared(UNEVEN, with_counts(simple_test({"aten::mul": 4}), "aten::mul", now))
    assert found.verdict is Verdict.REGRESSED
    seen = "7" if now.is_constant else "7 to 9"
    assert found.reason == f"1 more op in each step than main ever had (it varies: 4 to 6; now {seen})"
    assert verdicts(found) == {"ops.count": Verdict.REGRESSED, "aten::mul": Verdict.REGRESSED}


@pytest.mark.parametrize(
    ("base", "now", "verdict", "notes"),
    [
        (UNEVEN, 6, None, ()),
        (UNEVEN, 3, None, ()),
        *(
            (
                base,
                8,
                None,
                (
                    "not gated, as the baseline varies by the process: tests/test_a.py::test_x "
                    "(ops, total: 4 to 6; now 8)",
                ),
            )
            for base in UNSURE
        ),
        *((base, 9, Verdict.REGRESSED, ()) for base in UNSURE),
    ],
)
def test_rise_past_an_uncertain_base_is_no_silent_pass(
    base: TestResult, now: int, verdict: Verdict | None, notes: tuple[str, ...]
) -> None:
    found = compare_runs(
        simple_run(base, name="main"),
        simple_run(simple_test({"aten::mul": now})),
        created=datetime.now(UTC),
        opprof_version="1",
    )
    assert (found.tests[0].verdict, found.notes) == (verdict, notes)


def test_rise_that_nobody_can_judge_hides_no_improvement() -> None:
    """Another op's varies by the process: its total fell all the same, and the note names the rise."""
    test = simple_test({"aten::mul": 4, "aten::item": 4})
    base = replace(with_counts(test, "aten::item", Samples.of([4, 6, 4])), unstable=("aten::item.count",))
    base = replace(base, totals=test.totals)
    head = simple_test({"aten::mul": 1, "aten::item": 7})
    head = replace(head, totals=simple_test({"aten::mul": 1, "aten::item": 4}).totals)
    found = compare_runs(
        simple_run(base, name="main"), simple_run(head), created=datetime.now(UTC), opprof_version="1"
    )
    assert verdicts(found.tests[0])["aten::item"] is None
    assert found.tests[0].verdict is Verdict.IMPROVED
    assert found.notes == (
        "not gated, as the baseline varies by the process: tests/test_a.py::test_x "
        "(aten::item: 4 to 6; now 7)",
    )


def test_advisories_past_the_cap_are_counted() -> None:
    base = simple_test({f"aten::op{number}": 4 for number in range(30)})
    for number in range(30):
        base = with_counts(base, f"aten::op{number}", Samples.of([4, 5, 4]))
    found = compared(base, simple_test({f"aten::op{number}": 3 for number in range(30)}))
    *_, times = found.advisories
    assert len(found.advisories) == 20
    assert found.advisories[0] == "13 more are not gated"  # of 30 ops, the total and the time
    assert times.startswith("self CPU")


@pytest.mark.parametrize(
    ("processes", "words"),
    [(2, "became nondeterministic"), (1, "not the same each time (nor was the base certified)")],
    ids=["certified", "uncertified"],
)
def test_count_that_became_uncertain_is_inconclusive(processes: int, words: str) -> None:
    base = simple_test({"aten::mul": 4}, processes=processes)
    found = compared(base, with_counts(base, "aten::mul", Samples.of([4, 5, 6])))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason == f"ops, total: {words}: 4 before, 4 to 6 from step to step"


def test_count_that_disagreed_with_itself_is_inconclusive_where_it_gates() -> None:
    base = simple_test({"aten::mul": 4})
    head = replace(
        with_counts(base, "aten::mul", Samples.of([5, 6, 6])), unstable=("ops.count", "aten::mul.count")
    )
    found = compared(base, head)
    reason = "became nondeterministic: 4 before, 5 to 6 from one measurement to the next (more in every step)"
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason == f"ops, total: {reason}"
    assert verdicts(found) == {"ops.count": Verdict.INCONCLUSIVE, "aten::mul": None}
    assert f"aten::mul: {reason}: not gated" in found.advisories


def test_count_that_is_certain_still_regresses_beside_one_that_is_not() -> None:
    base = simple_test({"aten::mul": 4, "aten::item": 1})
    uneven = with_counts(base, "aten::mul", Samples.of([4, 5, 6]))
    found = compared(base, with_counts(uneven, "aten::item", Samples.constant(2, steps=3)))
    assert found.verdict is Verdict.REGRESSED
    assert verdicts(found)["aten::item"] is Verdict.REGRESSED
    assert verdicts(found)["ops.count"] is Verdict.INCONCLUSIVE


def test_base_that_disagreed_with_itself_is_advisory() -> None:
    head = simple_test({"aten::mul": 4})
    base = replace(
        with_counts(head, "aten::mul", Samples.of([4, 5, 6])), unstable=("ops.count", "aten::mul.count")
    )
    assert compared(base, head).verdict is None


@pytest.mark.parametrize(("side", "verdict"), [("head", Verdict.INCONCLUSIVE), ("base", None)])
def test_what_is_called_unstable_gates_nothing_though_it_looks_certain(
    side: str, verdict: Verdict | None
) -> None:
    """As a document says that a later repetition did."""
    sides = {"base": simple_test({"aten::mul": 4}), "head": simple_test({"aten::mul": 5})}
    sides[side] = replace(sides[side], unstable=("ops.count", "aten::mul.count"))
    found = compared(sides["base"], sides["head"])
    assert found.verdict is verdict
    assert verdicts(found)["ops.count"] is (None if side == "base" else verdict)


def test_nothing_certain_is_no_pass() -> None:
    uneven = {"ops.count": Samples.of([1, 2, 3]), "ranges.count": Samples.of([1, 2, 3])}
    base = replace(simple_test({"aten::mul": 4}), totals=uneven)
    found = compared(base, base)
    assert found.verdict is None
    assert "nothing could be judged" in found.reason


def test_nothing_that_stayed_nothing_is_no_pass_beside_what_ran() -> None:
    ranges = simple_test({"forward": 4})
    uneven = replace(ranges, totals={**ranges.totals, "ranges.count": Samples.of([1, 2, 3])})
    assert compared(uneven, uneven).verdict is None
    off = replace(ranges, gates={"ranges.count": "off"})
    found = compared(off, off)
    assert (found.verdict, found.reason) == (None, "no gate holds what it runs")
    own = replace(off, gates={"ranges.count": "off", "forward.count": "exact"})
    assert compared(own, own).verdict is Verdict.PASS
    assert compared(simple_test({}), simple_test({})).verdict is Verdict.PASS


def test_other_environment_is_inconclusive() -> None:
    base = simple_test({"aten::mul": 4})
    found = compared(base, base, environment=TORCH_212)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason == "ops, total: measured in another environment: torch 2.12.0 -> 2.13.0"


def test_ranges_do_not_depend_on_torch() -> None:
    base = simple_test({"forward": 4})
    assert compared(base, base, environment=TORCH_212).verdict is Verdict.PASS


def test_other_cpu_model_matters_to_times_only() -> None:
    base = simple_test({"aten::mul": 4})
    cpu = Environment(fingerprint={"python": "3.11", "torch": "2.13.0", "cpu_model": "other"})
    found = compared(base, base, environment=cpu)
    assert found.verdict is Verdict.PASS
    assert "CPU model other -> unknown" in found.advisories[0]


def test_other_sources_are_inconclusive() -> None:
    base = simple_test({"aten::mul": 4})
    found = compared(base, replace(base, sources=("ranges", "ops-itt")))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "captured by ops in the base, by ops-itt here" in found.reason


def test_lost_total_is_inconclusive() -> None:
    base = simple_test({"aten::mul": 4})
    totals = {name: value for name, value in base.totals.items() if name != "ops.count"}
    found = compared(base, replace(base, totals=totals))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "it was not measured in this run" in found.reason


@pytest.mark.parametrize(
    ("capture", "reason"),
    [
        (CaptureStats(dropped=12), "12 events were dropped in this run"),
        (CaptureStats(truncated=True), "the recording of this run was cut off at its byte budget"),
        (CaptureStats(names_overflowed=1), "this run had too many names to keep a row of each"),
        (CaptureStats(sampled_ppm=125_000), "this run recorded 12.5% of the ops, by sampling"),
    ],
)
def test_incomplete_recording_is_inconclusive(capture: CaptureStats, reason: str) -> None:
    base = simple_test({"aten::mul": 4})
    found = compared(base, replace(base, capture=capture))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert reason in found.reason


def test_samples_without_a_single_op_are_not_equal() -> None:
    nothing = simple_test({"aten::mul": 0}, capture=CaptureStats(sampled_ppm=1))
    found = compared(nothing, nothing)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "the base recorded 0.0001% of the ops, by sampling" in found.reason


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("capture", [CaptureStats(dropped=9), CaptureStats(truncated=True)])
def test_two_recordings_without_an_event_are_not_equal_where_events_were_lost(
    capture: CaptureStats, side: int
) -> None:
    nothing = simple_test({})
    sides = [nothing, nothing]
    sides[side] = replace(nothing, capture=capture)
    found = compared(*sides)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert ("the base", "this run")[side] in found.reason


def test_ranges_are_judged_although_ops_were_sampled() -> None:
    before = simple_test({"load": 2, "aten::mul": 4})
    sampled = simple_test({"load": 3, "aten::mul": 1}, capture=CaptureStats(sampled_ppm=10_000))
    found = compared(before, sampled)
    assert verdicts(found)["load"] is Verdict.REGRESSED
    assert {verdicts(found)[name] for name in ("ops.count", "aten::mul")} == {Verdict.INCONCLUSIVE}


def test_new_range_is_a_name_not_a_regression() -> None:
    base = simple_test({"load": 2})
    assert compared(base, simple_test({"load": 2, "parse": 3})).verdict is Verdict.CHANGED
    assert compared(base, simple_test({"load": 3})).verdict is Verdict.REGRESSED
    strict = simple_test({"load": 2, "parse": 3}, gates={"ranges.count": "exact"})
    assert compared(base, strict).verdict is Verdict.REGRESSED


def test_background_is_shown_and_never_judged() -> None:
    base = simple_test({"aten::mul": 4})
    background = OpRow(
        name="aten::item",
        kind=OpKind.OP,
        background=True,
        metrics={"count": Samples(steps=3, total=5, low=0, high=5)},
    )
    found = compared(base, replace(base, ops=(*base.ops, background)))
    assert found.verdict is Verdict.PASS
    assert [change.background for change in found.changes] == [True]


def test_cut_off_rows_are_no_change() -> None:
    base = simple_test({"aten::mul": 4, "aten::add": 1})
    head = replace(base, ops=base.ops[:1], ops_omitted=1)
    assert compared(base, head).changes == ()


def test_cause_is_the_caller_that_rose() -> None:
    def tree(clones: int) -> tuple[TreeNode, ...]:
        return (
            TreeNode(parent=-1, name="ProfilerStep*", count=3, self_ns=0),
            TreeNode(parent=0, name="forward", count=3, self_ns=0),
            TreeNode(parent=1, name="aten::clone", count=clones * 3, self_ns=0),
            TreeNode(parent=2, name="aten::copy_", count=clones * 3, self_ns=0),
            TreeNode(parent=0, name="aten::copy_", count=30, self_ns=0),
        )

    base = replace(simple_test({"aten::copy_": 10, "forward": 1}), tree=tree(0))
    head = replace(simple_test({"aten::copy_": 12, "aten::clone": 2, "forward": 1}), tree=tree(2))
    causes = {change.op: change.cause for change in compared(base, head).changes}
    assert causes == {
        None: "",
        "aten::clone": "new in range 'forward'",
        "aten::copy_": "called by aten::clone",
    }


def test_an_op_that_calls_itself_is_not_its_own_cause() -> None:
    base = calling(("aten::dropout", 1))
    head = calling(("aten::dropout", 1, ("aten::div_", 1, ("aten::div_", 1))))
    causes = {change.op: change.cause for change in compared(base, head).changes if change.op}
    assert causes == {"aten::div_": "new, called by aten::dropout"}


@pytest.mark.parametrize(
    "lines", [{"source": "Encoder.forward, model.py:41"}, {"places": {"Encoder.forward, model.py:41": 6}}]
)
def test_lines_of_one_side_are_candidates(lines: dict[str, Any]) -> None:
    base, head = simple_test({"aten::clone": 1}), simple_test({"aten::clone": 2, "aten::mul": 1})
    head = replace(head, ops=tuple(replace(row, **lines) for row in head.ops))
    causes = {change.op: change.cause for change in compared(base, head).changes if change.op}
    assert causes == {
        "aten::clone": "perhaps in Encoder.forward, model.py:41",
        "aten::mul": "new in Encoder.forward, model.py:41",
    }


def test_cause_is_the_line_whose_calls_rose() -> None:
    base, head = simple_test({"aten::clone": 10}), simple_test({"aten::clone": 12})
    base = replace(base, ops=tuple(replace(row, places={"load, data.py:7": 30}) for row in base.ops))
    places = {"load, data.py:7": 30, "forward, model.py:41": 6}
    head = replace(head, ops=tuple(replace(row, source="load, data.py:7", places=places) for row in head.ops))
    causes = [change.cause for change in compared(base, head).changes if change.op]
    assert causes == ["in forward, model.py:41"]


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
def test_what_was_not_measured_is_not_judged(
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


def test_broken_limit_leads_the_sentence() -> None:
    base = simple_test({"aten::mul": 4})
    head = simple_test({"aten::mul": 5, "aten::item": 1}, limits={"aten::item.count": 0, "ops.count": 2})
    found = compared(base, head)
    assert found.verdict is Verdict.REGRESSED
    assert found.reason.startswith(
        "aten::item.count is 1 in each step, and <= 0 is allowed (and 1 more limit); 2 more ops in each step"
    )


def test_limits_hold_without_a_baseline() -> None:
    head = simple_test({"aten::item": 1}, limits={"aten::item.count": 0})
    found = compare_test(head, None, base=None, head=simple_run(head))
    assert found.verdict is Verdict.REGRESSED
    kept = replace(head, limits={"aten::item.count": 1})
    assert compare_test(kept, None, base=None, head=simple_run(kept)).verdict is Verdict.PASS
    unlimited = replace(head, limits={})
    assert compare_test(unlimited, None, base=None, head=simple_run(unlimited)).verdict is None


def test_what_stands_in_the_way_of_rows_that_did_not_change_is_told_once() -> None:
    test = simple_test({"aten::item": 2, "aten::mul": 1})
    found = compared(test, test, environment=TORCH_212)
    told = [change for change in found.changes if change.verdict is Verdict.INCONCLUSIVE]
    assert told
    assert all(change.op is None for change in told)


def test_a_watched_op_that_no_longer_runs_is_better_beside_a_base_that_counts_views_too() -> None:
    base = simple_test({"aten::item": 2, "aten::mul": 1})
    head = simple_test({"aten::mul": 1})
    views = Samples.constant(0, steps=head.steps)
    found = compared(base, replace(head, totals={**head.totals, VIEWS_COUNT.name: views}))
    (item,) = (change for change in found.changes if change.op == "aten::item")
    assert item.verdict is Verdict.IMPROVED
