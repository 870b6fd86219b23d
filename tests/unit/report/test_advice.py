"""The anti-pattern of ops that rose."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from support.documents.judged_tests import compared
from support.documents.strategies import simple_test

from pytest_opprof.capture.torch_ops import WORK
from pytest_opprof.metrics.host import OPS_BYTES
from pytest_opprof.report.advice import advice
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples


def rule_of(base: TestResult, head: TestResult, text: str = "") -> str:
    """The number of the rule for all that rose, as if one line called it; empty if none applies."""
    found = compared(base, head)
    risen = [change for change in found.changes if change.op and change.rise > 0]
    rule = advice(risen, found, roots=[change.op for change in risen if change.op], text=text)
    return rule.code if rule else ""


ONCE, AGAIN, OTHER, OTHER_AGAIN = (
    f"Torch-Compiled Region: {number}" for number in ("0/0", "0/1", "1/0", "1/1")
)


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ({"aten::index": 1, "aten::mul": 2}, {"aten::index": 8, "aten::mul": 9}, "OP104"),
        ({"aten::index": 1, "aten::mul": 2}, {"aten::index": 8, "aten::mul": 16}, ""),
        ({"aten::mul": 2}, {"aten::select": 8, "aten::mul": 16}, "OP104"),
        ({ONCE: 2}, {ONCE: 1, AGAIN: 2}, "OP107"),
        ({ONCE: 1, AGAIN: 1}, {ONCE: 1, AGAIN: 1, OTHER: 1, OTHER_AGAIN: 1}, "OP107"),
        ({ONCE: 1, AGAIN: 1}, {ONCE: 2, OTHER: 1, OTHER_AGAIN: 1}, ""),
        ({"aten::add_": 1, "aten::mul": 1}, {"aten::add": 1, "aten::mul": 1}, "OP106"),
        ({"aten::add_": 1, "aten::neg": 1}, {"aten::add": 1, "aten::neg_": 1}, ""),
    ],
    ids=[
        "rows",
        "a function that is called more often",
        "rows that are new",
        "compiled again",
        "one more function that is compiled again",
        "a function of another number",
        "an op that allocates now",
        "another one that allocated before",
    ],
)
def test_rule_for_ops(before: Mapping[str, int], after: Mapping[str, int], code: str) -> None:
    assert rule_of(simple_test(before), simple_test(after)) == code


def with_bytes(amount: int, counts: Mapping[str, int]) -> TestResult:
    """A test whose ops have so many bytes each."""
    test = simple_test(counts)
    each = Samples.constant(amount, steps=test.steps)
    rows = tuple(row.with_metrics(bytes=each) for row in test.ops)
    totals = dict(test.totals) | {OPS_BYTES.name: Samples.constant(amount * len(rows), steps=test.steps)}
    return replace(test, ops=rows, totals=totals, sources=(*test.sources, WORK))


@pytest.mark.parametrize(
    ("ops", "code"),
    [
        (["aten::clone"], "OP103"),
        (["aten::nonzero"], "OP101"),
        (["aten::to", "aten::_to_copy"], "OP108"),
    ],
)
def test_a_larger_input_alone_is_no_pattern(ops: list[str], code: str) -> None:
    once, twice = dict.fromkeys(ops, 1), dict.fromkeys(ops, 2)
    base = with_bytes(64, once)
    assert rule_of(base, with_bytes(64, twice)) == code
    found = compared(base, with_bytes(256, once))
    assert {change.op for change in found.changes if change.rise > 0} == {None, *ops}
    assert rule_of(base, with_bytes(256, once)) == ""


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("return x.to(torch.float64)", "OP108"),
        ("return x.to(memory_format=torch.channels_last)", ""),
        ("return x.to(", ""),
        ("y = torch.cat([x.double(),", "OP108"),
        ("torch.from_numpy(x.detach().cpu().numpy())", "OP102"),
        ("torch.as_tensor(np.clip(x.numpy(), 0, 1))", "OP102"),
        ("x = torch.as_tensor(data).clone().numpy()", "OP108"),
        ("x = torch.tensor(scale(data)).cpu()", "OP108"),
    ],
)
def test_rule_for_the_text_of_a_line(text: str, code: str) -> None:
    before, after = ({"aten::to": count, "aten::_to_copy": count} for count in (1, 2))
    assert rule_of(simple_test(before), simple_test(after), text) == code


def test_ops_of_background_threads_are_not_counted() -> None:
    base, head = simple_test({"aten::relu_": 1}), simple_test({"aten::relu": 1, "aten::select": 8})
    of_a_thread = [replace(row, background=True) for row in simple_test({"aten::select": 8}).ops]
    assert rule_of(*(replace(test, ops=(*test.ops, *of_a_thread)) for test in (base, head))) == "OP104"
