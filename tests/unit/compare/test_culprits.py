"""The ops and lines that spent a broken budget."""

from dataclasses import replace

import pytest
from support.documents.strategies import simple_test

from pytest_opprof.compare.limits import culprits
from pytest_opprof.metrics import parse_path
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples

PLACE, OTHER = "step, train.py:31", "step, train.py:7"


def keeping(**more: object) -> TestResult:
    """A test whose `linear` retains memory of its `addmm`, more of it on one line than on another."""
    test = simple_test({"aten::linear": 2, "aten::addmm": 2, "aten::add": 1})
    metrics = {"aten::linear": 96, "aten::addmm": 96, "aten::add": 8}
    rows = [
        replace(
            row.with_metrics(retained=Samples.constant(metrics[row.name], steps=test.steps)),
            parent_op="aten::linear" if row.name == "aten::addmm" else None,
            places={OTHER: 9, PLACE: 1},
            parts={"retained": {OTHER: 4, PLACE: 92}},
        )
        for row in test.ops
    ]
    return replace(test, ops=tuple(rows), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("memory.retained", f"aten::linear in {PLACE} (96 B); aten::add in {PLACE} (8 B)"),
        ("aten::addmm.retained", f"{PLACE} (96 B)"),
        ("aten::add*.retained", f"aten::addmm in {PLACE} (96 B); aten::add in {PLACE} (8 B)"),
        ("ops.count", f"aten::linear in {OTHER} (2); aten::add in {OTHER} (1)"),
        ("wall_time", ""),
    ],
)
def test_culprits_are_outermost_ops_and_busiest_lines(path: str, words: str) -> None:
    assert culprits(parse_path(path, where="a test"), keeping()) == words


@pytest.mark.parametrize(
    ("path", "words"), [("ops.count", "aten::mm (6)"), ("cpu_memory.allocated", "aten::mm (24 B)")]
)
def test_views_and_memory_given_back_use_up_no_budget(path: str, words: str) -> None:
    mm, transpose = simple_test({"aten::mm": 6, "aten::transpose": 12}).ops
    taken, given = (Samples.constant(amount, steps=3) for amount in (24, -8))
    rows = (
        mm.with_metrics(cpu_memory=taken),
        transpose.with_metrics(views=transpose.count, cpu_memory=given),
    )
    assert culprits(parse_path(path, where="a test"), simple_test({}, ops=rows)) == words


def test_culprits_are_functions_with_reasons() -> None:
    reasons = {"compile.recompiles": {"f, model.py: tensor 'x' dtype mismatch": 2, "g, model.py: n == 3": 1}}
    assert culprits(parse_path("compile.recompiles", where="a test"), keeping(functions=reasons)) == (
        "in f, model.py: tensor 'x' dtype mismatch (2 times); g, model.py: n == 3"
    )
