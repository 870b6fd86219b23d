"""The cause of a change: the caller, the line, or the surrounding code."""

from dataclasses import replace
from typing import Any

import pytest
from support.documents.judged_tests import compared
from support.documents.strategies import calling, simple_test

from pytest_opprof.results.run import TreeNode


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
