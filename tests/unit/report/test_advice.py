"""The anti-pattern of ops that rose."""

from collections.abc import Mapping

import pytest
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.compare.sessions import compare_test
from pytest_opprof.report.advice import advice
from pytest_opprof.results.run import TestResult


def rule_of(base: TestResult, head: TestResult, text: str = "") -> str:
    """The number of the rule for all that rose, as if one line called it; empty if none applies."""
    found = compare_test(head, base, base=simple_run(base, name="main"), head=simple_run(head))
    risen = [change for change in found.changes if change.op and change.rise > 0]
    rule = advice(risen, found, roots=[change.op for change in risen if change.op], text=text)
    return rule.code if rule else ""


ONCE, AGAIN, OTHER, OTHER_AGAIN = (
    f"Torch-Compiled Region: {number}" for number in ("0/0", "0/1", "1/0", "1/1")
)


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ({ONCE: 2}, {ONCE: 1, AGAIN: 2}, "OP107"),
        ({ONCE: 1, AGAIN: 1}, {ONCE: 1, AGAIN: 1, OTHER: 1, OTHER_AGAIN: 1}, "OP107"),
        ({ONCE: 1, AGAIN: 1}, {ONCE: 2, OTHER: 1, OTHER_AGAIN: 1}, ""),
        ({"aten::add_": 1, "aten::mul": 1}, {"aten::add": 1, "aten::mul": 1}, "OP106"),
        ({"aten::add_": 1, "aten::neg": 1}, {"aten::add": 1, "aten::neg_": 1}, ""),
    ],
    ids=[
        "compiled again",
        "one more function that is compiled again",
        "a function of another number",
        "an op that allocates now",
        "another one that allocated before",
    ],
)
def test_rule_for_ops(before: Mapping[str, int], after: Mapping[str, int], code: str) -> None:
    assert rule_of(simple_test(before), simple_test(after)) == code
