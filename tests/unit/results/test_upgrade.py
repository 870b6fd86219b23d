"""Files of schema version 1 are read, compared and shown as in the release that wrote them.

`version_1/` holds what that release wrote and printed: runs, a comparison, a counts file, a history, accepted
values, op tables. Nothing there is ever rewritten.
"""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof.baselines.accepted import read_accepted
from pytest_opprof.cli.main import main
from pytest_opprof.compare.document import comparison_to_document, read_comparison
from pytest_opprof.compare.sessions import compare_runs
from pytest_opprof.errors import DocumentError
from pytest_opprof.results.document import run_to_document
from pytest_opprof.results.files import read_run, run_from_bytes, write_run
from pytest_opprof.results.run import OpRow, Run

OLD = Path(__file__).parent / "version_1"
RUNS = ("base.json", "head.json", "cuda.json", "counts/main.counts.json")
COLUMNS = (
    "name,kernels,launches,syncs,copies,host copies,copied,cuda busy,cuda idle,queue depth,cuda mem,cpu mem,"
    "total flops,self cuda,# of calls"
)
# members of a version 1 row that have become metrics
FIELDS = {
    "count": "count",
    "views": "views",
    "cpu_time_total_ns": "cpu_time_total",
    "self_cpu_time_total_ns": "self_cpu_time_total",
    "cpu_memory": "cpu_memory",
    "device_memory": "device_memory",
    "flops": "flops",
}


def written(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((OLD / name).read_text(encoding="utf-8"))
    assert document["schema_version"] == 1
    return document


def numbers(row: OpRow) -> dict[str, Any]:
    return {name: samples.to_document() for name, samples in row.metrics.items()}


@pytest.mark.parametrize("name", RUNS)
def test_every_number_of_version_1_is_read(name: str) -> None:
    run, document = read_run(OLD / name), written(name)
    assert [test.node_id for test in run.tests] == [test["node_id"] for test in document["tests"]]
    for test, told in zip(run.tests, document["tests"], strict=True):
        assert {metric: samples.to_document() for metric, samples in test.totals.items()} == told["totals"]
        assert len(test.ops) == len(told["ops"]) > 0
        for row, old in zip(test.ops, told["ops"], strict=True):
            assert (row.name, row.kind.value) == (old["name"], old["kind"])
            before = {new: old[member] for member, new in FIELDS.items() if member in old}
            before |= old.get("device", {})
            assert numbers(row) == {name: value for name, value in before.items() if value or name == "count"}


@pytest.mark.parametrize("name", RUNS)
def test_written_again_it_is_of_todays_version_and_the_same(name: str, tmp_path: Path) -> None:
    run = read_run(OLD / name)
    write_run(tmp_path / "new.json", run)
    assert json.loads((tmp_path / "new.json").read_text())["schema_version"] == 2
    assert read_run(tmp_path / "new.json") == run


def changes_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    told = ("op", "kind", "background", "metric", "base", "head", "verdict")
    return [
        {member: change[member] for member in told} | {"test": test["node_id"]}
        for test in document["tests"]
        for change in test["changes"]
    ]


def compared(base: Run, head: Run) -> dict[str, Any]:
    found = compare_runs(base, head, created=datetime(2026, 11, 25, tzinfo=UTC), opprof_version="0.1.0")
    document: dict[str, Any] = comparison_to_document(found)
    return document


def test_comparison_of_version_1_files_is_unchanged() -> None:
    document = written("comparison.json")
    found = compared(read_run(OLD / "base.json"), read_run(OLD / "head.json"))
    assert changes_of(found) == changes_of(document) != []
    assert [test["verdict"] for test in found["tests"]] == [test["verdict"] for test in document["tests"]]


def test_version_1_comparison_is_unchanged() -> None:
    document, found = (
        written("comparison.json"),
        comparison_to_document(read_comparison(OLD / "comparison.json")),
    )
    assert found["schema_version"] == 2
    assert changes_of(found) == changes_of(document)
    run = read_run(OLD / "base.json")
    sides = {test["node_id"]: test["base"] for test in found["tests"]}
    assert sides == {test["node_id"]: test for test in run_to_document(run)["tests"]}


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [(("base.json",), "tables-base.txt"), (("cuda.json", "--columns", COLUMNS), "tables-cuda.txt")],
    ids=["host", "devices"],
)
def test_tables_of_version_1_files_are_unchanged(
    arguments: tuple[str, ...],
    printed: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(OLD)
    assert main(["show", "--rows", "-1", *arguments]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == (OLD / printed).read_text("utf-8").splitlines()


def test_version_1_history_is_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(OLD / "store", tmp_path / "store")
    monkeypatch.chdir(tmp_path)
    printed = ""
    for test in ("test_step", "test_copies"):
        for metric in ("aten::clone.count", "cpu_memory.peak", "ops.count"):
            main(["history", test, metric, "--csv", "--store", "dir:store"])
            printed += capsys.readouterr().out
    assert printed.splitlines() == (OLD / "history.csv").read_text("utf-8").splitlines()


def test_version_1_acceptances_are_read() -> None:
    found = read_accepted(OLD / "store")
    told = written("store/accepted.json")["accepted"]
    assert {key: one.value for key, one in found.items()} == {
        (one["test"], one["op"], one["metric"]): one["value"] for one in told
    }


@pytest.mark.parametrize(
    ("member", "value", "sentence"),
    [
        ("count", -2, "tests[0].ops[0].metrics.count: -2 is less than 0"),
        ("count", None, "tests[0].ops[0].metrics.count: null is not an integer"),
        ("flops", False, "tests[0].ops[0].metrics.flops: False is not an integer"),
        ("device", {"kernels": -1}, "tests[0].ops[0].metrics.kernels: -1 is less than 0"),
        ("device", [1], "tests[0].ops[0].metrics: a list is not an object"),
        ("name", 7, "tests[0].ops[0].name: 7 is not a string"),
    ],
)
def test_never_valid_values_are_refused(member: str, value: object, sentence: str) -> None:
    document = written("cuda.json")
    document["tests"][0]["ops"][0][member] = value
    with pytest.raises(DocumentError) as caught:
        run_from_bytes(json.dumps(document).encode(), where="x.json")
    assert str(caught.value).startswith(f"x.json: {sentence}")


@pytest.mark.parametrize("tests", [None, 7, [7], [{"ops": 7}], [{"ops": [7]}], [{"base": 7}]])
def test_other_shapes_are_refused_and_break_nothing(tests: object) -> None:
    with pytest.raises(DocumentError, match=r"^x\.json: tests"):
        run_from_bytes(json.dumps(written("cuda.json") | {"tests": tests}).encode(), where="x.json")


def test_members_of_a_later_release_are_ignored() -> None:
    run = read_run(OLD / "cuda.json")
    document = json.loads(json.dumps(run_to_document(run)))
    _grow(document)
    assert "later" in document["tests"][0]["ops"][0]
    document["tests"][0]["ops"][0]["metrics"]["later_metric"] = -3
    assert run_from_bytes(json.dumps(document).encode(), where="x.json") == run


def _grow(part: Any) -> None:
    """Put an unknown member into every object that is not a mapping of names."""
    if isinstance(part, dict):
        for name, each in list(part.items()):
            if name not in {
                "metrics",
                "totals",
                "gates",
                "limits",
                "settings",
                "unheard",
                "lines",
                "fingerprint",
                "details",
            }:
                _grow(each)
        part["later"] = {"more": [1]}
    elif isinstance(part, list):
        for each in part:
            _grow(each)
