"""Work that other changes explain: FLOPs, which torch has for two of the elementwise ops, bytes and nodes."""

from dataclasses import replace

import pytest
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.compare.gates import parse_gates
from pytest_opprof.compare.sessions import Policy, compare_test
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples


def working(*, total: int, nbytes: int | None = 64, **flops: int) -> TestResult:
    """A test that runs ``add``, ``mul``, ``div`` and ``mm`` once, with N FLOPs."""
    names = ("add", "mul", "div", "mm")
    test = simple_test({f"aten::{name}": 1 for name in names})
    each = {f"aten::{name}": Samples.constant(flops.get(name, 0), steps=test.steps) for name in names}
    totals = {"flops.total": total} if nbytes is None else {"flops.total": total, "ops.bytes": nbytes}
    return replace(
        test,
        sources=(*test.sources, "flops", *(() if nbytes is None else ("work",))),
        ops=tuple(row.with_metrics(flops=each[row.name]) for row in test.ops),
        totals={
            **test.totals,
            **{name: Samples.constant(value, steps=test.steps) for name, value in totals.items()},
        },
    )


def verdict_of(base: TestResult, head: TestResult, *, gates: dict[str, str] | None = None) -> Verdict | None:
    policy = Policy(command_line=parse_gates(gates or {}, where="here"))
    found = compare_test(head, base, base=simple_run(base, name="main"), head=simple_run(head), policy=policy)
    verdicts = {change.metric: change.verdict for change in found.changes if change.op is None}
    return verdicts.get("flops.total")


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        pytest.param(
            working(total=8, mm=8), working(total=20, mm=8, mul=12), Verdict.CHANGED, id="div to mul"
        ),
        pytest.param(
            working(total=20, mm=8, mul=12), working(total=8, mm=8), Verdict.CHANGED, id="mul to div"
        ),
        pytest.param(working(total=8, mm=8), working(total=16, mm=16), Verdict.REGRESSED, id="a product"),
        pytest.param(
            working(total=8, mm=8), working(total=21, mm=9, mul=12), Verdict.REGRESSED, id="both of them"
        ),
        pytest.param(working(total=16, mm=16), working(total=8, mm=8), Verdict.IMPROVED, id="less"),
    ],
)
def test_elements_are_judged_by_their_bytes(base: TestResult, head: TestResult, verdict: Verdict) -> None:
    assert verdict_of(base, head) is verdict


def test_elements_without_bytes_are_judged_by_flops() -> None:
    base, head = working(total=8, mm=8, nbytes=None), working(total=20, mm=8, mul=12, nbytes=None)
    assert verdict_of(base, head) is Verdict.REGRESSED


def test_requested_flops_gate_counts_everything() -> None:
    base, head = working(total=8, mm=8), working(total=20, mm=8, mul=12)
    assert verdict_of(base, head, gates={"flops.total": "exact"}) is Verdict.REGRESSED


def traded(gates: dict[str, str], **totals: tuple[int, int]) -> dict[str, Verdict | None]:
    """The verdicts on totals that change as given; ``_`` in a name stands for a dot."""
    sides = []
    for side in (0, 1):
        test = simple_test({"aten::mul": totals["ops_count"][side]})
        each = {
            name.replace("_", "."): Samples.constant(values[side], steps=3) for name, values in totals.items()
        }
        sides.append(replace(test, sources=(*test.sources, "work"), totals={**test.totals, **each}))
    base, head = sides
    policy = Policy(command_line=parse_gates(gates, where="here"))
    found = compare_test(head, base, base=simple_run(base, name="main"), head=simple_run(head), policy=policy)
    return {change.metric: change.verdict for change in found.changes if change.op is None}


@pytest.mark.parametrize(
    ("metric", "totals", "unasked"),
    [
        ("ops.bytes", {"ops_count": (10, 5), "ops_bytes": (1_000, 1_900)}, Verdict.CHANGED),
        (
            "autograd.nodes",
            {"ops_count": (5, 5), "views_count": (1, 4), "autograd_nodes": (2, 5)},
            None,
        ),
    ],
    ids=["more bytes of fewer ops", "nodes of views"],
)
def test_requested_gate_on_work_that_others_explain_stands(
    metric: str, totals: dict[str, tuple[int, int]], unasked: Verdict | None
) -> None:
    assert traded({}, **totals).get(metric) is unasked
    assert traded({metric: "exact"}, **totals)[metric] is Verdict.REGRESSED
