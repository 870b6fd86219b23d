"""Laws of every comparison, over random programs and random edits of them."""

import random
from collections import Counter
from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from support.documents.strategies import simple_run
from support.programs.edits import UNWATCHED, WATCHED, Program, edits, programs, recorded, renamed

from pytest_opprof.compare.comparison import Change, RewriteKind, TestComparison
from pytest_opprof.compare.sessions import compare_runs, compare_test
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import OP_FAMILIES, OPS_COUNT, RANGES_COUNT, TOTALS, Family, OpFamily
from pytest_opprof.results.run import OpRow, TestResult

_NOW = simple_run().created
_PEAK_TOLERANCE = 100  # inverse tolerance of bounded metrics


def compared(base: TestResult, head: TestResult) -> TestComparison:
    return compare_test(head, base, base=simple_run(base, name="main"), head=simple_run(head))


def risen_totals(base: TestResult, head: TestResult) -> set[str]:
    """The totals that gate and rose, by the definition of the verdicts."""
    found = set()
    for name, metric in TOTALS.items():
        if metric.family is Family.TIME or metric.is_free:
            continue
        if name not in base.totals:
            continue  # such as counts that are only made on request
        before, after = base.totals[name].low, head.totals[name].low
        allowed = before / _PEAK_TOLERANCE if metric.family is Family.BOUNDED else 0
        if after - before > allowed:
            found.add(name)
    return found


def risen_watched(base: TestResult, head: TestResult) -> set[str]:
    """The watched ops that ran more often, not only as views, and whose family or all ops did too."""
    before = {row.name: row for row in base.ops if not row.background}

    def has_risen(row: OpRow) -> bool:
        other = before.get(row.name)
        sides = [(row.count, other and other.count), (row.not_views, other and other.not_views)]
        return all(now.low > (then.low if then else 0) for now, then in sides)

    names = {row.name for row in head.ops if row.name in WATCHED and not row.background and has_risen(row)}
    if OPS_COUNT.name in risen_totals(base, head):
        return names
    return {
        op
        for family in OP_FAMILIES
        for op in names & family.ops.keys()
        if has_family_risen(family, base, head)
    }


def has_family_risen(family: OpFamily, base: TestResult, head: TestResult) -> bool:
    """Whether the ops of a family ran more often, all together or those that do the work."""
    before, after = (
        Counter(
            {row.name: row.not_views.low for row in test.ops if row.kind is OpKind.OP and not row.background}
        )
        for test in (base, head)
    )
    return any(sum(after[op] - before[op] for op in ops) > 0 for ops in (family.ops, family.core))


def has_more_of_a_range(base: TestResult, head: TestResult) -> bool:
    before = {row.name: row.count.low for row in base.ops if row.kind is OpKind.RANGE}
    return any(
        row.count.low > before.get(row.name, row.count.low) for row in head.ops if row.kind is OpKind.RANGE
    )


def must_regress(base: TestResult, head: TestResult) -> bool:
    totals = risen_totals(base, head)
    if not has_more_of_a_range(base, head):
        totals.discard(RANGES_COUNT.name)  # naming a stretch of code does not make it do more
    return bool(totals or risen_watched(base, head))


def judged(found: TestComparison) -> list[Change]:
    return [change for change in found.changes if change.verdict]


@given(edits())
def test_regression_means_a_risen_total_or_watched_op(pair: tuple[Program, Program]) -> None:
    base, head = map(recorded, pair)
    assert (compared(base, head).verdict is Verdict.REGRESSED) is must_regress(base, head)


@given(edits())
def test_no_risen_total_passes(pair: tuple[Program, Program]) -> None:
    base, head = map(recorded, pair)
    if risen_totals(base, head) - {RANGES_COUNT.name}:
        assert compared(base, head).verdict is Verdict.REGRESSED
    elif risen_totals(base, head):
        assert compared(base, head).verdict in {Verdict.REGRESSED, Verdict.CHANGED}


@given(edits())
def test_no_rise_of_a_watched_op_passes(pair: tuple[Program, Program]) -> None:
    base, head = map(recorded, pair)
    found = compared(base, head)
    for name in risen_watched(base, head):
        assert found.verdict is Verdict.REGRESSED
        (row,) = (
            one
            for one in found.changes
            if (one.op, one.metric, one.background) == (name, "count", False) and not one.rewrite
        )
        assert row.verdict is Verdict.REGRESSED


@given(edits())
def test_swapping_sides_swaps_rises_and_falls(pair: tuple[Program, Program]) -> None:
    """IMPROVED becomes REGRESSED if a total or a watched op fell.

    Without such a fall it becomes CHANGED. REGRESSED becomes IMPROVED if nothing fell, otherwise CHANGED or
    REGRESSED; PASS and `measured` stay.
    """
    base, head = map(recorded, pair)
    there, back = compared(base, head), compared(head, base)
    work = [change for change in judged(there) if not change.is_free]
    fell = any(change.rise < 0 for change in work)
    match there.verdict:
        case Verdict.PASS | None:
            assert back.verdict is there.verdict
        case Verdict.IMPROVED:
            expected = Verdict.REGRESSED if must_regress(head, base) else Verdict.CHANGED
            assert back.verdict is expected
        case _ if not work:
            assert back.verdict is Verdict.CHANGED
        case Verdict.REGRESSED | Verdict.CHANGED if not fell and not has_renames(there):
            assert back.verdict is Verdict.IMPROVED
        case _:
            assert back.verdict in {Verdict.REGRESSED, Verdict.CHANGED}
    assert totals_risen(there) == {name: -rise for name, rise in totals_risen(back).items()}


def has_renames(found: TestComparison) -> bool:
    """Whether an op disappeared: folded with a new one, it is not a row that fell."""
    return any(
        change.rewrite is not None and change.rewrite.kind not in {RewriteKind.ADDED, RewriteKind.WRAPPED}
        for change in found.changes
    )


def totals_risen(found: TestComparison) -> dict[str, int]:
    return {change.metric: change.rise for change in found.changes if change.op is None}


def unchanged(program: Program) -> Verdict | None:
    """A step that runs nothing passes, unless all work ran on other threads, which no gate covers."""
    return None if program.background and not program.calls else Verdict.PASS


@given(programs)
def test_a_program_against_itself_passes(program: Program) -> None:
    found = compared(recorded(program), recorded(program))
    assert (found.verdict, found.changes) == (unchanged(program), ())


@given(programs, st.integers(1, 3), st.integers(1, 3))
def test_the_number_of_steps_changes_nothing(program: Program, before: int, after: int) -> None:
    found = compared(recorded(program, steps=before), recorded(program, steps=after))
    assert (found.verdict, found.changes) == (unchanged(program), ())


@given(edits(), st.randoms(use_true_random=False))
def test_the_order_of_rows_decides_nothing(pair: tuple[Program, Program], dice: random.Random) -> None:
    def shuffled(test: TestResult) -> TestResult:
        return replace(test, ops=tuple(dice.sample(test.ops, len(test.ops))))

    base, head = map(recorded, pair)
    found, again = compared(base, head), compared(shuffled(base), shuffled(head))
    assert found.verdict is again.verdict
    assert sorted(map(repr, found.changes)) == sorted(map(repr, again.changes))


@given(programs, st.sets(st.sampled_from(UNWATCHED)))
def test_pure_renaming_is_one_row_per_name(program: Program, names: set[str]) -> None:
    head = deepcopy(program)
    renamed(head, {name: f"my::{name}" if "::" in name else f"my {name}" for name in names})
    found = compared(recorded(program), recorded(head))
    hit = names & set(program.names())
    assert found.verdict is (Verdict.CHANGED if hit else unchanged(program))
    assert len(found.changes) == len(hit)
    assert {str(change.rewrite) for change in found.changes} == {
        f"{name} -> my::{name}" if "::" in name else f"{name} -> my {name}" for name in hit
    }


@given(edits())
def test_folding_ops_changes_no_verdict(pair: tuple[Program, Program]) -> None:
    def without_places(test: TestResult) -> TestResult:
        rows = tuple(replace(row, parent_op=f"{row.name} of {side}") for side, row in enumerate(test.ops))
        return replace(test, ops=rows, tree=())

    base, head = map(recorded, pair)
    together, apart = compared(base, head), compared(without_places(base), without_places(head))
    assert together.verdict is apart.verdict
    assert len(together.changes) <= len(apart.changes)
    assert totals_risen(together) == totals_risen(apart)
    assert rows_of_their_own(together) == rows_of_their_own(apart)


def rows_of_their_own(found: TestComparison) -> set[tuple[str, str, Verdict | None]]:
    """The rows of ops with a gate."""
    return {
        (change.op, change.metric, change.verdict) for change in found.changes if change.op and change.rule
    }


@given(edits(), programs)
def test_other_tests_do_not_matter(pair: tuple[Program, Program], other: Program) -> None:
    base, head = map(recorded, pair)
    new = recorded(other, node_id="tests/test_b.py::test_y")
    alone, beside = (
        compare_runs(simple_run(base), simple_run(head, *more), created=_NOW, opprof_version="0.1.0").test(
            head.node_id
        )
        for more in ([], [new])
    )
    assert alone == beside


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(RewriteKind))
def test_the_edits_meet_each_rule(kind: RewriteKind) -> None:
    """The laws prove little about a rule that their programs never use."""

    def follows(pair: tuple[Program, Program]) -> bool:
        found = compared(*map(recorded, pair))
        return any(change.rewrite and change.rewrite.kind is kind for change in found.changes)

    # any program will do, so it is not shrunk
    find(edits(), follows, settings=settings(phases=[Phase.generate], max_examples=5_000, database=None))
