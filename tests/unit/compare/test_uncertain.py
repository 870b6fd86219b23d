"""Counts that vary between steps or processes: their gates and messages."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from support.documents.judged_tests import compared, verdicts, with_counts
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.compare.sessions import compare_runs
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples


def test_uncertain_baseline_is_advisory() -> None:
    base = with_counts(simple_test({"aten::mul": 4}), "aten::mul", Samples.of([4, 5, 4]))
    found = compared(base, simple_test({"aten::mul": 5}))
    assert found.verdict is None
    assert found.changes[0].verdict is None
    assert found.reason == "nothing was judged: ops, total: the baseline varies: 4 to 5; now 5"
    fewer = compared(base, simple_test({"aten::mul": 3}))
    assert fewer.verdict is None
    assert fewer.changes[0].verdict is None
    assert "ops, total: the baseline varies: 4 to 5; now 3: not gated" in fewer.advisories


UNEVEN = with_counts(simple_test({"aten::mul": 4}), "aten::mul", Samples.of([4, 6, 4]))
# another process had another range, or there was no other process
UNSURE = (replace(UNEVEN, unstable=("ops.count", "aten::mul.count")), replace(UNEVEN, processes=1))


@pytest.mark.parametrize("now", [Samples.constant(7, steps=3), Samples.of([7, 9, 8])], ids=["even", "uneven"])
def test_rise_above_an_uncertain_bases_range_regresses(now: Samples) -> None:
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
                    "not gated, because the baseline varies between processes: tests/test_a.py::test_x "
                    "(ops, total: 4 to 6; now 8)",
                ),
            )
            for base in UNSURE
        ),
        *((base, 9, Verdict.REGRESSED, ()) for base in UNSURE),
    ],
)
def test_rise_past_an_uncertain_base_is_reported(
    base: TestResult, now: int, verdict: Verdict | None, notes: tuple[str, ...]
) -> None:
    found = compare_runs(
        simple_run(base, name="main"),
        simple_run(simple_test({"aten::mul": now})),
        created=datetime.now(UTC),
        opprof_version="1",
    )
    assert (found.tests[0].verdict, found.notes) == (verdict, notes)


def test_unjudgeable_rise_hides_no_improvement() -> None:
    """Another op varies by process: its total fell all the same, and the note names the rise."""
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
        "not gated, because the baseline varies between processes: tests/test_a.py::test_x "
        "(aten::item: 4 to 6; now 7)",
    )


def test_advisories_past_the_cap_are_counted() -> None:
    base = simple_test({f"aten::op{number}": 4 for number in range(30)})
    for number in range(30):
        base = with_counts(base, f"aten::op{number}", Samples.of([4, 5, 4]))
    found = compared(base, simple_test({f"aten::op{number}": 3 for number in range(30)}))
    *_, times = found.advisories
    assert len(found.advisories) == 20
    assert found.advisories[0] == "13 more are not gated"  # for 30 ops, the total and the time
    assert times.startswith("self CPU")


@pytest.mark.parametrize(
    ("processes", "words"),
    [(2, "became nondeterministic"), (1, "varies (and the base is not certified)")],
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


def peaking(*peaks: int) -> TestResult:
    test = simple_test({"aten::mul": 4}, steps=len(peaks))
    return replace(test, totals={**test.totals, "cpu_memory.peak": Samples.of(peaks)})


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        ((1000, 1000), (1000, 1008), Verdict.PASS),
        ((1000, 1008), (1004, 1000), Verdict.PASS),
        ((1000, 1008), (990, 985), Verdict.IMPROVED),
        ((1000, 1008), (1018, 1018), Verdict.PASS),
        ((1000, 1008), (1019, 1020), Verdict.REGRESSED),
        ((1000, 1000), (1000, 1011), Verdict.INCONCLUSIVE),
        (
            (1000, 1000),
            (1010, 1020),
            Verdict.INCONCLUSIVE,
        ),  # one step is within the tolerance, another is not
        ((1000, 1008), (1015, 1025), Verdict.INCONCLUSIVE),
        ((1000, 1008), (1000, 5000), Verdict.INCONCLUSIVE),
        ((1000, 1011), (1000, 5000), Verdict.PASS),  # by the number of ops: this peak is not a gate
    ],
)
def test_steps_that_differ_within_a_tolerance_are_judged(
    base: tuple[int, ...], head: tuple[int, ...], verdict: Verdict
) -> None:
    assert compared(peaking(*base), peaking(*head)).verdict is verdict


def test_a_requested_tolerance_covers_measurements_that_disagree() -> None:
    base, gates = simple_test({"aten::mul": 100}), {"ops.count": "5%"}
    head = with_counts(base, "aten::mul", Samples.of([100, 104, 100]))
    head = replace(head, unstable=("ops.count",), gates=gates)
    assert compared(base, head).verdict is Verdict.PASS
    assert compared(replace(head, gates={}), head).verdict is Verdict.PASS
    risen = compared(base, replace(simple_test({"aten::mul": 106}), gates=gates))
    assert risen.verdict is Verdict.REGRESSED


def test_the_reason_for_a_rise_gives_the_values_of_its_steps() -> None:
    found = compared(peaking(1000, 1000), peaking(1100, 1104))
    assert found.reason == (
        "100 B more peak memory in each step than main ever had (it varies: 1.0 KiB; now 1.1 KiB)"
    )


def test_certain_count_regresses_beside_an_uncertain_one() -> None:
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
def test_unstable_metric_gates_nothing_despite_equal_steps(side: str, verdict: Verdict | None) -> None:
    """As a run file says after a later repetition."""
    sides = {"base": simple_test({"aten::mul": 4}), "head": simple_test({"aten::mul": 5})}
    sides[side] = replace(sides[side], unstable=("ops.count", "aten::mul.count"))
    found = compared(sides["base"], sides["head"])
    assert found.verdict is verdict
    assert verdicts(found)["ops.count"] is (None if side == "base" else verdict)


def test_nothing_passes_without_a_certain_count() -> None:
    uneven = {"ops.count": Samples.of([1, 2, 3]), "ranges.count": Samples.of([1, 2, 3])}
    base = replace(simple_test({"aten::mul": 4}), totals=uneven)
    found = compared(base, base)
    assert found.verdict is None
    assert found.reason == "nothing was judged: ops, total: the baseline varies: 1 to 3; now 1 to 3"
