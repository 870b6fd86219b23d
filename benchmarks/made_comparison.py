"""Generates a large comparison, as a project with many models could have, and judges it as any other."""

from __future__ import annotations

import importlib.metadata
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pytest_opprof.compare.sessions import compare_runs
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import CPU_MEMORY_ALLOCATED, OPS_COUNT, RANGES_COUNT, TOTAL_SELF_CPU_TIME
from pytest_opprof.results.names import STEP_NAME
from pytest_opprof.results.run import (
    CaptureStats,
    Commit,
    Environment,
    OpRow,
    Run,
    Schedule,
    TestResult,
    TreeNode,
)
from pytest_opprof.results.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_opprof.compare.comparison import Comparison

_STEPS: Final = 5
_LISTED: Final = 20  # ops for which a run's JSON file keeps each step's value
_NODES: Final = 400
_CREATED: Final = datetime(2026, 3, 14, 9, 26, tzinfo=UTC)
_WORDS: Final = """
add mul addmm linear softmax layer_norm transpose view reshape copy_ clone empty
empty_strided contiguous to _to_copy matmul bmm gelu dropout embedding index_select sum
mean sub div exp sqrt cat split slice select expand
"""
_LAYERS: Final = (
    "Encoder.forward",
    "Decoder.forward",
    "Attention.forward",
    "Block.forward",
    "Mlp.forward",
    "loss",
)
# One in so many tests calls clone more often, calls it less often, or has one op replaced by another.
_REGRESSED_EVERY: Final = 40
_IMPROVED_EVERY: Final = 25
_RENAMED_EVERY: Final = 30


def made_comparison(*, tests: int, ops: int) -> Comparison:
    """A comparison of two runs of so many tests with so many ops each, and some regressions."""
    base, head = (_run(side, tests=tests, ops=ops) for side in ("base", "head"))
    return compare_runs(
        base,
        head,
        created=_CREATED + timedelta(hours=1),
        opprof_version=importlib.metadata.version("pytest-opprof"),
    )


def _run(side: str, *, tests: int, ops: int) -> Run:
    is_head = side == "head"
    return Run(
        run_id=side,
        created=_CREATED,
        opprof_version=importlib.metadata.version("pytest-opprof"),
        name=None if is_head else "main",
        commit=Commit(id=("5d6e7f8" if is_head else "1a2b3c4") * 5, dirty=is_head, branch="main"),
        environment=Environment(
            fingerprint={
                "python": "3.11.2",
                "torch": "2.13.0+cpu",
                "numpy": "2.4.1",
                "platform": "linux-x86_64",
                "cpu_model": "AMD EPYC 9R14" if is_head else "AMD EPYC 7R13",
            }
        ),
        tests=tuple(_test(number, ops=ops, is_head=is_head) for number in range(tests)),
    )


def _test(number: int, *, ops: int, is_head: bool) -> TestResult:
    names = _names(ops)
    source = random.Random(number)  # noqa: S311 - numbers to draw
    tree = _tree(names, source)
    if is_head:
        tree = _changed(tree, number)
    noise = random.Random(f"{number} {is_head}")  # noqa: S311
    tree = [replace(node, self_ns=round(node.self_ns * noise.uniform(0.9, 1.2))) for node in tree]
    rows = sorted(_rows(tree, noise), key=lambda row: -row.self_cpu_time_total_ns.total)
    rows = [row if at < _LISTED else _summarized(row) for at, row in enumerate(rows)]
    of_ops = sum(row.count.low for row in rows if row.kind is OpKind.OP)
    allocated = [row for row in rows if row.name.startswith("aten::empty")]
    return TestResult(
        node_id=f"tests/models/test_model_{number // 20:02}.py::TestModel::test_it[depth={number % 20}-bf16]",
        schedule=Schedule(warmup=1, active=_STEPS),
        activities=("cpu",),
        sources=("ranges", "ops", "memory"),
        steps=_STEPS,
        capture=CaptureStats(events=sum(node.count for node in tree), threads=1),
        processes=2,
        totals={
            OPS_COUNT.name: _same(of_ops),
            RANGES_COUNT.name: _same(sum(row.count.low for row in rows) - of_ops),
            CPU_MEMORY_ALLOCATED.name: _same(65_536 * sum(row.count.low for row in allocated)),
            TOTAL_SELF_CPU_TIME.name: _steps(sum(row.self_cpu_time_total_ns.low for row in rows), noise),
        },
        ops=tuple(rows),
        tree=tuple(tree),
    )


def _names(count: int) -> list[str]:
    """So many names: the layers, ops, and variants of the ops."""
    words = _WORDS.split()
    plain = [f"aten::{word}" for word in words]
    forms = [
        f"aten::{word}_{form}"
        for form in ("out", "backward", "native", "dense", "int8", "fused")
        for word in words
    ]
    return [*_LAYERS, *plain, *forms][:count]


def _tree(names: list[str], source: random.Random) -> list[TreeNode]:
    """A step's call tree of nested layers and ops, with every name at least once."""
    nodes = [TreeNode(parent=-1, name=STEP_NAME, count=_STEPS, self_ns=40_000)]
    layers = [0]
    wanted = [*names, *(source.choice(names[len(_LAYERS) :]) for _ in range(_NODES - len(names)))]
    for at, name in enumerate(wanted):
        is_layer = name in _LAYERS
        ancestors = layers if is_layer or at % 3 == 0 else range(max(len(nodes) - 6, 0), len(nodes))
        parent = source.choice(list(ancestors))
        if is_layer:
            layers.append(len(nodes))
        self_ns = round(source.lognormvariate(10, 1.2))
        nodes.append(
            TreeNode(parent=parent, name=name, count=_STEPS * source.choice((1, 1, 2, 4)), self_ns=self_ns)
        )
    return nodes


def _changed(tree: list[TreeNode], number: int) -> list[TreeNode]:
    """The tree after a code change; for most tests it is unchanged."""
    clones = [place for place, node in enumerate(tree) if node.name == "aten::clone"]
    if number % _REGRESSED_EVERY == 1:
        layer = next(place for place, node in enumerate(tree) if node.name == _LAYERS[0])
        return [*tree, TreeNode(parent=layer, name="aten::clone", count=_STEPS * 2, self_ns=310_000)]
    if number % _IMPROVED_EVERY == 2:  # noqa: PLR2004 - any other remainder
        tree[clones[0]] = replace(tree[clones[0]], count=tree[clones[0]].count + _STEPS)
        return [replace(node, count=_STEPS) if node.name == "aten::gelu" else node for node in tree]
    if number % _RENAMED_EVERY == 3:  # noqa: PLR2004
        return [replace(node, name="aten::silu") if node.name == "aten::gelu" else node for node in tree]
    return tree


def _rows(tree: list[TreeNode], noise: random.Random) -> Iterator[OpRow]:
    inside = [node.self_ns for node in tree]
    for place in range(len(tree) - 1, 0, -1):
        inside[tree[place].parent] += inside[place]
    for name in dict.fromkeys(node.name for node in tree):
        places = [place for place, node in enumerate(tree) if node.name == name]
        count = sum(tree[place].count for place in places) // _STEPS
        parent = tree[places[0]].parent
        is_op = name.startswith("aten::")
        yield OpRow(
            name=name,
            kind=OpKind.OP if is_op else OpKind.RANGE,
            metrics={
                "count": _same(count),
                "cpu_time_total": _steps(sum(inside[place] for place in places) // _STEPS, noise),
                "self_cpu_time_total": _steps(sum(tree[place].self_ns for place in places) // _STEPS, noise),
                **({"cpu_memory": _same(count * 65_536)} if name.startswith("aten::empty") else {}),
            },
            parent_op=tree[parent].name if parent > 0 else None,
            source=f"forward, model.py:{40 + places[0] % 90}" if is_op else None,
        )


def _same(value: int) -> Samples:
    return Samples.constant(value, steps=_STEPS)


def _steps(value: int, noise: random.Random) -> Samples:
    return Samples.of(round(value * noise.uniform(1.0, 1.3)) for _ in range(_STEPS))


def _summarized(row: OpRow) -> OpRow:
    return row.with_metrics(
        cpu_time_total=row.cpu_time_total_ns.summarized(),
        self_cpu_time_total=row.self_cpu_time_total_ns.summarized(),
    )
