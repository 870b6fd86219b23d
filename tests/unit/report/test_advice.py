"""The anti-pattern of ops that rose."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from support.documents.judged_tests import compared
from support.documents.strategies import simple_test

from pytest_opprof.capture.torch_ops import WORK
from pytest_opprof.compare.call_sites import line_at
from pytest_opprof.metrics.host import AUTOGRAD_NODES, OPS_BYTES, VIEWS_COUNT
from pytest_opprof.report.advice import advice
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples


def rule_of(base: TestResult, head: TestResult, text: str = "", *, place: str = "f, model.py:1") -> str:
    """The number of the rule for all that rose, as if one line called it; empty if none applies."""
    found = compared(base, head)
    risen = [change for change in found.changes if change.op and change.rise > 0]
    assert risen
    line = line_at(place, replace(head, lines={place: text}), is_certain=True)
    rule = advice(risen, found, roots=[change.op for change in risen if change.op], line=line)
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


def with_nodes(lines: Mapping[str, tuple[int, int]]) -> TestResult:
    """A test with one op: how often each line calls it, and the nodes that this adds to autograd's graph."""
    test = simple_test({"aten::mm": sum(calls for calls, _ in lines.values())})
    each = Samples.constant(sum(nodes for _, nodes in lines.values()), steps=test.steps)
    (row,) = test.ops
    row = replace(
        row.with_metrics(nodes=each),
        places={place: calls * test.steps for place, (calls, _) in lines.items()},
        parts={"nodes": {place: nodes * test.steps for place, (_, nodes) in lines.items() if nodes}},
    )
    totals = dict(test.totals) | {AUTOGRAD_NODES.name: each, VIEWS_COUNT.name: each.zeros()}
    return replace(test, ops=(row,), totals=totals, sources=(*test.sources, WORK))


TRAINED, MINED = "loss, loss.py:4", "mine, miner.py:7"


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ({MINED: (1, 0)}, {MINED: (1, 1)}, "OP105"),
        ({TRAINED: (1, 1), MINED: (1, 0)}, {TRAINED: (1, 1), MINED: (1, 1)}, "OP105"),
        ({TRAINED: (4, 2)}, {TRAINED: (4, 4)}, "OP105"),
        ({TRAINED: (1, 2), MINED: (1, 0)}, {TRAINED: (1, 4), MINED: (1, 0)}, ""),
    ],
    ids=["one line", "another line is trained", "the same line is trained", "more nodes in each call"],
)
def test_rule_for_what_autograd_records(
    before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]], code: str
) -> None:
    assert rule_of(with_nodes(before), with_nodes(after)) == code


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
    base, head = (replace(test, ops=(*test.ops, *of_a_thread)) for test in (base, head))
    assert rule_of(base, head) == "OP104"


SOLVER, OPTIONS = "Solver.step, solver.py", "Solver.__init__, solver.py"


def with_reads(lines: Mapping[int, int]) -> TestResult:
    """A test whose solver reads a value so often, by line."""
    calls = sum(lines.values())
    test = simple_test({"aten::item": calls, "aten::mul": calls + 1})
    places = {f"{SOLVER}:{line}": count * test.steps for line, count in lines.items()}
    texts = {f"{SOLVER}:8": "if error.item() > tolerance:", f"{SOLVER}:9": "self.seen.append(error)"}
    return replace(test, ops=tuple(replace(row, places=places) for row in test.ops), lines=texts)


@pytest.mark.parametrize(
    ("place", "text", "before", "after", "code"),
    [
        (f"{OPTIONS}:3", "safety=0.5,", {8: 4}, {8: 5}, ""),
        (f"{OPTIONS}:3", "stats=True,", {8: 4}, {8: 4, 9: 4}, "OP101"),
        (f"{OPTIONS}:3", "stats=True,", {}, {9: 4}, "OP101"),
        (f"{SOLVER}:8", "while error.item() > 0.5:", {8: 4}, {8: 5}, "OP101"),
        (f"{SOLVER}:7", "for row in rows:", {8: 1}, {8: 5}, "OP101"),
        (f"{SOLVER}:7", "tolerance = 0.5", {8: 1}, {8: 5}, ""),
        (f"{OPTIONS}:7", "for row in rows:", {8: 1}, {8: 5}, ""),
    ],
    ids=[
        "a line that reads nothing",
        "another line reads too now",
        "another line reads now",
        "the line itself",
        "a loop around it",
        "a line before it",
        "a loop of another function",
    ],
)
def test_only_reads_of_the_line_or_new_ones_are_advised_on(
    place: str, text: str, before: Mapping[int, int], after: Mapping[int, int], code: str
) -> None:
    base, head = map(with_reads, (before, after))
    assert rule_of(base, head, text, place=place) == code
