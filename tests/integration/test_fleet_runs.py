"""Jobs whose ranks wrote runs, as with `torchrun -m pytest`, in the tables beside traces."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.cli.main import main
from pytest_opprof.fleet.ingest import ingest
from pytest_opprof.fleet.manifest import RankFile, Status
from pytest_opprof.results.files import write_run
from pytest_opprof.results.run import Environment, Measurement, MeasurementStatus, TestResult
from pytest_opprof.results.samples import Samples

RANKS = 4
CREATED = datetime(2026, 1, 2, tzinfo=UTC)
TRAIN = simple_test({"aten::mul": 2, "ProfilerStep*": 1}, node_id="t.py::test_train")
EVAL = simple_test({"aten::mul": 1}, node_id="t.py::test_eval", steps=2)


def job(
    tmp_path: Path, name: str, *tests: TestResult, other: Iterable[TestResult] = (), suffix: str = ""
) -> list[RankFile]:
    """Each rank measures the same tests, but rank 3 takes `others` if given."""
    folder = tmp_path / name
    folder.mkdir()
    for rank in range(RANKS):
        environment = Environment(details={"rank": str(rank), "world_size": str(RANKS)})
        measured = tuple(other) if other and rank == 3 else tests
        created = CREATED + timedelta(seconds=rank)
        write_run(
            folder / f"worker{rank}.json{suffix}",
            simple_run(*measured, environment=environment, created=created),
        )
    with ThreadPoolExecutor(1) as executor:
        return ingest(str(folder), str(tmp_path / "tables"), job=name, executor=executor)


def told(tmp_path: Path, capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["fleet", *arguments, "--tables", str(tmp_path / "tables")]) == code
    return capsys.readouterr().out


@pytest.mark.parametrize("suffix", ["", ".gz"], ids=["plain", "gzip"])
def test_tests_become_steps_of_a_rank(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    files = job(tmp_path, "a", TRAIN, EVAL, suffix=suffix)
    assert [(one.rank, one.world_size, one.status, one.steps) for one in files] == [
        (rank, RANKS, Status.OK, 5) for rank in range(RANKS)
    ]
    query = "SELECT test, name, step, count, self_ns FROM ops WHERE rank = 1 ORDER BY step"
    assert told(tmp_path, capsys, "sql", query).splitlines()[1:] == [
        *(f"t.py::test_eval,aten::mul,{step},1,1000" for step in (0, 1)),
        *(f"t.py::test_train,aten::mul,{step},2,2000" for step in (2, 3, 4)),
    ]
    shown = told(tmp_path, capsys, "show", "a").splitlines()
    assert shown[0] == "a, window 0: 4 of 4 ranks, 5 steps, 0 collectives"
    assert shown[2].split()[:3] == ["whole", "step", "1.2"]
    assert "computing" not in "".join(shown)


def test_one_rank_that_runs_more_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = simple_test({"aten::mul": 3, "ProfilerStep*": 1}, node_id="t.py::test_train")
    job(tmp_path, "a", TRAIN, EVAL)
    job(tmp_path, "b", TRAIN, EVAL, other=(more, EVAL))
    found = told(tmp_path, capsys, "diff", "a", "b", code=1)
    assert "FAILED: t.py::test_train: aten::mul: runs more often on 1 of 4 ranks (2 → 2 to 3 a step)" in found
    job(tmp_path, "c", TRAIN, EVAL)
    assert told(tmp_path, capsys, "diff", "a", "c").splitlines()[-1] == "passed"


def test_tests_missing_from_a_job_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job(tmp_path, "a", TRAIN)
    job(tmp_path, "b", TRAIN, EVAL)
    assert "1 test only in b" in told(tmp_path, capsys, "diff", "a", "b")
    assert "missing: a lacks 1 test of b" in told(tmp_path, capsys, "diff", "b", "a", code=1)


def test_a_rank_that_did_not_measure_a_test_is_named(tmp_path: Path) -> None:
    measurement = Measurement(status=MeasurementStatus.INCONCLUSIVE, reason="events were dropped")
    files = job(tmp_path, "a", TRAIN, EVAL, other=(TRAIN, replace(EVAL, measurement=measurement)))
    assert [one.status for one in files] == [Status.OK] * 3 + [Status.FAILED]
    assert files[3].error == "DocumentError: t.py::test_eval was not measured: events were dropped"


def test_a_damaged_run_is_named(tmp_path: Path) -> None:
    job(tmp_path, "a", TRAIN)
    path = tmp_path / "a" / "worker2.json"
    path.write_bytes(path.read_bytes()[:-40])
    with ThreadPoolExecutor(1) as executor:
        files = ingest(str(tmp_path / "a"), str(tmp_path / "tables"), job="a", executor=executor)
    assert [one.status for one in files] == [Status.OK, Status.OK, Status.FAILED, Status.OK]
    assert "worker2.json" in files[2].error


def test_varying_steps_keep_their_values_or_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = (op for op in TRAIN.ops if op.name == "aten::mul")
    kept = replace(row, name="aten::add", metrics={**row.metrics, "count": Samples.of([2, 0, 4])})
    range_only = Samples(steps=3, total=9, low=2, high=4)
    summed = replace(row, name="aten::sub", metrics={**row.metrics, "count": range_only})
    job(tmp_path, "a", replace(TRAIN, ops=(kept, summed)))
    query = "SELECT name, step, count FROM ops WHERE rank = 0 ORDER BY name, step"
    assert told(tmp_path, capsys, "sql", query).splitlines()[1:] == [
        *("aten::add,0,2", "aten::add,2,4"),
        *("aten::sub,0,2", "aten::sub,1,4", "aten::sub,2,3"),
    ]
