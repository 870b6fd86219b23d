"""The blocks of a failure: a line with its ops, and the advice on it."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from support.documents.judged_tests import compared
from support.documents.strategies import calling, simple_test

from pytest_opprof.compare.common_cause import beginnings_of
from pytest_opprof.compare.comparison import Change, Rewrite, RewriteKind
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.report.blocks import advice_on, blocks_of, first_rows
from pytest_opprof.report.section import change_lines
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples

OUTSIDE = "train, train.py:9"


def inside_a_range(name: str, op: str, count: int, *, line: str) -> TestResult:
    """A test whose line `OUTSIDE` opens a range, in which another line or the same one calls an op."""
    test = calling((name, 1, (op, count)))
    places = {name: {OUTSIDE: test.steps}, op: {line: count * test.steps}}
    return replace(test, ops=tuple(replace(row, places=places[row.name]) for row in test.ops))


@pytest.mark.parametrize(
    ("around", "line", "code"),
    [
        ("my::layer", OUTSIDE, "(OP101)"),
        ("Optimizer.step#Adam.step", OUTSIDE, ""),
        ("Optimizer.step#Mine.step", "Mine.step, mine.py:5", "(OP101)"),
    ],
    ids=["of the user", "of an optimizer", "of an optimizer of the user"],
)
def test_only_values_that_the_user_reads_are_advised_on(around: str, line: str, code: str) -> None:
    """Adam keeps the step of each parameter in a tensor of the host."""
    base, head = (inside_a_range(around, "aten::item", many, line=line) for many in (2, 4))
    found = compared(base, head)
    (told,) = {advice_on(block, found) for block in blocks_of(found)}
    assert told[-len("(OP101)") :] == code


@pytest.mark.parametrize(
    ("line", "words", "code"),
    [(OUTSIDE, "its backward", ""), ("hook, hooks.py:3", "", "(OP103)")],
    ids=["of autograd", "of a hook"],
)
def test_only_a_copy_in_a_hook_is_advised_on(line: str, words: str, code: str) -> None:
    node = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
    base, head = (inside_a_range(node, "aten::clone", many, line=line) for many in (1, 3))
    found = compared(base, head)
    (block,) = blocks_of(found)
    assert [row.words for row in block.rows] == [words]
    assert advice_on(block, found)[-len("(OP103)") :] == code


@pytest.mark.parametrize(("width", "is_told"), [(80, True), (30, False)], ids=["room", "no room"])
def test_an_op_says_what_it_replaced_once(width: int, *, is_told: bool) -> None:
    """In its row, or else in the table of other changes, which also has what was removed."""
    found = compared(calling(("aten::mul_", 2)), calling(("aten::mul", 2)))
    (block,) = blocks_of(found)
    assert [(row.name, row.words) for row in block.rows] == [("aten::mul", "was aten::mul_")]
    gone = Rewrite(kind=RewriteKind.REMOVED, before=("aten::to",), after=())
    none, two = (Samples.constant(count, steps=3) for count in (0, 2))
    removed = Change(
        op="aten::to", metric="count", base=two, head=none, verdict=Verdict.IMPROVED, rewrite=gone
    )
    text = "\n".join(change_lines(replace(found, changes=(*found.changes, removed)), width=width))
    assert ("was aten::mul_" in text, "renamed" in text) == (is_told, not is_told)
    assert "aten::to " in text
    assert [change.op for change in beginnings_of(found)] == ["aten::mul"]


def test_a_short_block_has_what_its_line_calls() -> None:
    """The sync is called last, after an op with many others inside."""

    def side(many: int) -> TestResult:
        inside = [(f"aten::in{number}", many) for number in range(9)]
        return calling(("aten::isfinite", many, *inside), ("aten::is_nonzero", many, ("aten::item", many)))

    (block,) = blocks_of(compared(side(1), side(2)))
    names = ["isfinite", "in0", "in1", "is_nonzero"]
    assert [row.name.removeprefix("aten::") for row in first_rows(block.rows, most=4)] == names


PRODUCT, LIST = "product, rows.py", "product.<locals>.<listcomp>, rows.py"


def with_rows(called: int, places: Mapping[str, Mapping[str, int]]) -> TestResult:
    """A test that calls a function `called` times: the calls of its ops by line. `aten::select` makes views."""
    test = simple_test({op: sum(lines.values()) for op, lines in places.items()})
    views = Samples.constant(sum(places.get("aten::select", {}).values()), steps=test.steps)
    rows = (
        replace(
            row.with_metrics(views=row.count) if row.name == "aten::select" else row,
            places={place: calls * test.steps for place, calls in places[row.name].items()},
        )
        for row in test.ops
    )
    totals = dict(test.totals) | {
        "ops.count": test.totals["ops.count"].minus(views),
        "views.count": views,
    }
    return replace(
        test,
        ops=tuple(rows),
        totals=totals,
        calls={PRODUCT: {"test_x, tests/test_a.py:9": called}, LIST: {f"{PRODUCT}:5": called}},
        lines={f"{function}:{line}": f"line {line}" for function in (PRODUCT, LIST) for line in (5, 6)},
    )


@pytest.mark.parametrize(
    ("called", "selected", "multiplied", "code"),
    [
        (1, {f"{PRODUCT}:5": 8}, {f"{LIST}:5": 8}, "(OP104)"),
        (1, {f"{PRODUCT}:5": 8}, {f"{PRODUCT}:6": 8}, "(OP104)"),
        (8, {f"{PRODUCT}:5": 8}, {f"{PRODUCT}:6": 8}, ""),
        (1, {f"{PRODUCT}:5": 8}, {f"{PRODUCT}:6": 2}, ""),
        (1, {"other, rows.py:5": 8}, {f"{PRODUCT}:6": 8}, ""),
    ],
    ids=[
        "a comprehension",
        "a loop of several lines",
        "a function that is called more often",
        "rows that are taken apart without a loop",
        "rows of another function",
    ],
)
def test_a_loop_over_rows_is_known_by_its_views(
    called: int, selected: Mapping[str, int], multiplied: Mapping[str, int], code: str
) -> None:
    base = with_rows(1, {"aten::mm": {f"{PRODUCT}:5": 1}})
    head = with_rows(called, {"aten::select": selected, "aten::mm": multiplied})
    found = compared(base, head)
    (block,) = blocks_of(found)
    assert [row.change.op for row in block.rows] == ["aten::mm"]
    assert advice_on(block, found)[-len("(OP104)") :] == code


def test_a_line_with_a_comprehension_is_one_block() -> None:
    """Python 3.11 runs the comprehension as a function of its own."""
    base = with_rows(1, {"aten::mm": {f"{PRODUCT}:5": 1}})
    head = with_rows(1, {"aten::mm": {f"{LIST}:5": 8}, "aten::stack": {f"{PRODUCT}:5": 1}})
    (block,) = blocks_of(compared(base, head))
    assert {row.change.op for row in block.rows} == {"aten::mm", "aten::stack"}
