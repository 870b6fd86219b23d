"""Renamed tests: suggested if there is one answer, and judged as what they are."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.compare.comparison import Comparison
from pytest_opprof.compare.sessions import compare_runs
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import PYTHON_INSTRUCTIONS
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples

MANY = {"aten::mul": 4, "aten::add": 4, "aten::relu": 1, "forward": 1}
OTHER = {"aten::mm": 9, "aten::t": 3, "backward": 1}
NEARLY = {f"aten::op{number}": 1 for number in range(10)}


def compared(base: dict[str, dict[str, int]], head: dict[str, dict[str, int]]) -> Comparison:
    return compare_runs(
        simple_run(*(simple_test(ops, node_id=name) for name, ops in base.items()), name="main"),
        simple_run(*(simple_test(ops, node_id=name) for name, ops in head.items())),
        created=datetime(2026, 1, 3, tzinfo=UTC),
        opprof_version="0.1.0",
        collected=Collected(node_ids=frozenset(head), whole_paths=frozenset({"."})),
    )


def suggested(found: Comparison, name: str) -> str:
    """The last part of a test's reason."""
    test = found.test(name)
    assert test is not None
    return test.reason.rpartition("; ")[2]


@pytest.mark.parametrize(
    ("old", "new", "ops", "how"),
    [
        ("a.py::test_x", "b.py::test_x", MANY, "it runs the same ops"),
        ("a.py::test_x", "a.py::TestX::test_x", MANY, "it runs the same ops"),
        ("a.py::test_x[1]", "a.py::test_x[one]", MANY, "it runs the same ops"),
        ("a.py::test_x", "b.py::test_y", MANY, "it runs the same ops"),
        ("a.py::test_x", "b.py::test_y", NEARLY, "it runs nearly the same ops"),
        ("a.py::test_x", "a.py::test_x[2]", {**MANY, "aten::mul": 9}, "its name differs in one part"),
    ],
    ids=["file", "class", "parameters", "name", "name and an op", "parameters and an op"],
)
def test_rename_is_suggested_on_both_sides(old: str, new: str, ops: dict[str, int], how: str) -> None:
    before = MANY if how == "its name differs in one part" else ops
    after = {**ops, "aten::new": 1} if how == "it runs nearly the same ops" else ops
    found = compared({old: before, "c.py::test_z": OTHER}, {new: after, "c.py::test_z": OTHER})
    rename = f"the same? --opprof-rename='{old} -> {new}'"
    assert suggested(found, old) == f"looks like {new}, which is new ({how}): {rename}"
    assert suggested(found, new) == f"looks like {old}, which is gone ({how})"
    assert found.counts == {Verdict.MISSING: 1, Verdict.NEW: 1, Verdict.PASS: 1}


@pytest.mark.parametrize(
    ("base", "head"),
    [
        ({"a.py::test_x": MANY}, {"b.py::test_x": OTHER}),
        ({"a.py::test_x": {"forward": 1}}, {"b.py::test_y": {"forward": 1}}),
        ({"a.py::test_x": MANY}, {"b.py::test_y": MANY, "b.py::test_z": MANY}),
        ({"a.py::test_x": MANY, "a.py::test_y": MANY}, {"b.py::test_z": MANY}),
    ],
    ids=["other ops", "few ops", "two answers", "two questions"],
)
def test_ambiguous_rename_is_not_suggested(
    base: dict[str, dict[str, int]], head: dict[str, dict[str, int]]
) -> None:
    found = compared(base, head)
    assert not [test.reason for test in found.tests if "looks like" in test.reason]


def test_name_decides_between_tests_of_equal_ops() -> None:
    names = ["test_x", "test_y"]
    found = compared({f"a.py::{name}": MANY for name in names}, {f"b.py::{name}": MANY for name in names})
    for name in names:
        assert suggested(found, f"a.py::{name}").startswith(f"looks like b.py::{name}, ")


def of_functions(node_id: str, instructions: int) -> TestResult:
    """A test without ops; each test is a function of its own."""
    own = node_id.rpartition("::")[2]
    functions = {f"f{number}, shop.py": instructions for number in range(4)}
    counts = {PYTHON_INSTRUCTIONS.name: {**functions, f"{own}, a.py": 9, f"{own}.<locals>.<lambda>, a.py": 5}}
    return simple_test({}, node_id=node_id, functions=counts)


@pytest.mark.parametrize(
    ("instructions", "sentence"),
    [
        (50, "looks like a.py::test_x, which is gone (it runs the same functions)"),
        (52, "looks like a.py::test_x, which is gone (it runs nearly the same functions)"),
        (80, "not in main"),
    ],
)
def test_tests_without_ops_are_known_by_their_functions(instructions: int, sentence: str) -> None:
    found = compare_runs(
        simple_run(of_functions("a.py::test_x", 50), name="main"),
        simple_run(of_functions("a.py::test_y", instructions)),
        created=datetime(2026, 1, 3, tzinfo=UTC),
        opprof_version="0.1.0",
        collected=Collected(node_ids=frozenset({"a.py::test_y"}), whole_paths=frozenset({"."})),
    )
    assert suggested(found, "a.py::test_y") == sentence


def test_tests_on_both_sides_are_not_suggested() -> None:
    found = compared({"a.py::test_x": MANY, "a.py::test_y": MANY}, {"a.py::test_x": MANY})
    assert suggested(found, "a.py::test_y") == "its file was collected without it"


def test_a_reason_fits_its_document() -> None:
    long = "x" * 2_500
    found = compared({f"a.py::test_{long}": MANY}, {f"b.py::test_{long}": MANY})
    assert all(len(test.reason) <= 4_096 for test in found.tests)


def test_many_tests_are_suggested_by_name() -> None:
    names = [f"test_{number}" for number in range(60)]
    found = compared({f"a.py::{name}": MANY for name in names}, {f"b.py::{name}": MANY for name in names})
    for name in names:
        assert suggested(found, f"b.py::{name}").startswith(f"looks like a.py::{name}, ")


def test_ops_of_another_process_only_are_ignored() -> None:
    seen = simple_test({**MANY, "aten::abs": 1}, node_id="a.py::test_x")
    count = Samples(steps=seen.steps, total=0, low=0, high=2)
    rows = tuple(row.with_metrics(count=count) if row.name == "aten::abs" else row for row in seen.ops)
    widened = replace(seen, ops=rows)
    found = compare_runs(
        simple_run(widened, name="main"),
        simple_run(replace(widened, node_id="b.py::test_x")),
        created=datetime(2026, 1, 3, tzinfo=UTC),
        opprof_version="0.1.0",
        collected=Collected(node_ids=frozenset({"b.py::test_x"}), whole_paths=frozenset({"."})),
    )
    assert suggested(found, "b.py::test_x") == "looks like a.py::test_x, which is gone (it runs the same ops)"


def test_nine_of_ten_ops_are_nearly_the_same() -> None:
    nine = dict(list(NEARLY.items())[1:])
    found = compared({"a.py::test_x": NEARLY}, {"b.py::test_y": nine})
    assert suggested(found, "a.py::test_x").startswith("looks like b.py::test_y")
    eight = dict(list(NEARLY.items())[2:])
    found = compared({"a.py::test_x": NEARLY}, {"b.py::test_y": eight})
    assert "looks like" not in suggested(found, "a.py::test_x")
