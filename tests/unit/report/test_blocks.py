"""The blocks of a failure: a line with its ops, and the advice on it."""

from dataclasses import replace

import pytest
from support.documents.judged_tests import compared
from support.documents.strategies import calling

from pytest_opprof.report.blocks import advice_on, blocks_of
from pytest_opprof.results.run import TestResult

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
