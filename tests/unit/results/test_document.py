"""Runs survive their files, and files keep their contract."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from support.documents.strategies import runs, simple_run, simple_test

from pytest_opprof.errors import DocumentError
from pytest_opprof.results.document import run_from_document, run_to_document
from pytest_opprof.results.run import CaptureStats, Run
from pytest_opprof.results.schema import Contract, validate


@given(runs())
def test_runs_survive_the_document(run: Run) -> None:
    document = json.loads(json.dumps(run_to_document(run)))
    validate(document, Contract.RUN, where="run.json")
    assert run_from_document(document, where="run.json") == run


def test_losses_of_a_test_survive_the_file_format() -> None:
    capture = CaptureStats(
        dropped=1,
        truncated=True,
        unmatched_ends=2,
        names_overflowed=3,
        crash_recovery=False,
        sampled_ppm=10_000,
        device_partial=True,
        device_dropped=4,
        unmatched_launches=5,
        unmatched_kernels=6,
        untimed_work=7,
    )
    run = simple_run(replace(simple_test({"aten::mul": 2}, capture=capture), ops_omitted=8))
    assert run_from_document(json.loads(json.dumps(run_to_document(run))), where="run.json") == run


def _document() -> dict[str, Any]:
    document: dict[str, Any] = run_to_document(simple_run(simple_test({"aten::mul": 2, "aten::add": 1})))
    return document


def test_created_stands_near_the_beginning() -> None:
    assert json.dumps(_document()).index('"created"') < 200


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (
            ("tests", 0, "ops", 0, "metrics", "count"),
            [1, 2],
            "tests[0].ops[0].metrics.count: 2 values for 3 steps",
        ),
        (
            ("tests", 0, "totals", "ops.count"),
            {"sum": 9, "min": 1, "max": 2},
            "tests[0].totals['ops.count']: a sum of 9 is not made of 3 values from 1 to 2",
        ),
        (
            ("tests", 0, "tree"),
            [{"parent": 0, "name": "x", "count": 1, "self_ns": 1}],
            "tests[0].tree[0].parent: 0 is not an earlier node",
        ),
        (("tests", 0, "ops", 1, "name"), "aten::mul", "tests[0].ops[1]: it is in the list twice"),
        (("created",), "2026-13-01T00:00:00+00:00", "created: 2026-13-01T00:00:00+00:00 is not a time"),
    ],
    ids=["samples", "sum", "tree", "twice", "time"],
)
def test_contradictions_name_their_place(path: tuple[Any, ...], value: object, sentence: str) -> None:
    document = _document()
    place: Any = document
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    validate(document, Contract.RUN, where="run.json")
    with pytest.raises(DocumentError) as caught:
        run_from_document(document, where="run.json")
    assert str(caught.value) == f"run.json: {sentence}. The file was not used"
