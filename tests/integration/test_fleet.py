"""Jobs of many ranks: read, shown and compared, with everything that can be wrong with a rank."""

import gzip
import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.kineto.rank_traces import rank_trace, write_job

from pytest_opprof.cli.main import main
from pytest_opprof.errors import UsageError
from pytest_opprof.fleet import ingest as ingesting
from pytest_opprof.fleet.database import Database
from pytest_opprof.fleet.difference import Gate, compare
from pytest_opprof.fleet.ingest import ingest
from pytest_opprof.fleet.manifest import RankFile, Status
from pytest_opprof.fleet.summary import summarize
from pytest_opprof.fleet.tables import Window, windows_of
from pytest_opprof.results.fleet import fleet_from_document

RANKS = 16


@pytest.fixture
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


def read(tmp_path: Path, threads: Executor, job: str = "a", window: str = "0", **plan: Any) -> list[RankFile]:
    folder = write_job(tmp_path / f"{job}-{window}", ranks=RANKS, **plan)
    return ingest(str(folder), str(tmp_path / "tables"), job=job, window=window, executor=threads)


def window(tmp_path: Path, job: str = "a") -> Window:
    return windows_of(str(tmp_path / "tables"), job)[-1]


def content(tmp_path: Path, job: str = "a") -> dict[str, bytes]:
    folder = tmp_path / "tables" / f"job={job}"
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*.parquet"))
        if "ranks" not in path.parts
    }


def test_job_is_summarized(tmp_path: Path, threads: Executor) -> None:
    read(
        tmp_path,
        threads,
        late_us={5: 2000},
        gemm_us={5: 2500},
        clock_us={rank: 7.0 * rank for rank in range(RANKS)},
    )
    summary = summarize(window(tmp_path))

    assert (summary.world_size, summary.steps, summary.collectives) == (RANKS, (0, 1, 2), 3)
    assert summary.problems == ()
    (straggler,) = summary.stragglers
    assert (straggler.rank, straggler.lateness_ns) == (5, 2_000_000)
    assert straggler.share_ppm == pytest.approx(200_000, rel=1e-4)
    assert straggler.arises == "computing, +1.5 ms a step, most in gemm (+150%)"
    offsets = [rank.clock_offset_ns for rank in summary.ranks]
    assert offsets == [7000 * rank - 52_500 for rank in range(RANKS)]
    assert summary.clock_skew_ns == 0
    assert summary.ranks[0].exposed_communication_ns == 6_000_000
    assert summary.ranks[5].exposed_communication_ns == 4_000_000


def test_the_tables_have_each_step(tmp_path: Path, threads: Executor) -> None:
    read(tmp_path, threads)
    query = "SELECT rank, step, count, self_ns FROM ops WHERE name = 'aten::mul' ORDER BY rank, step"
    assert Database([window(tmp_path)]).query(query) == [
        (rank, step, 2, 20_000) for rank in range(RANKS) for step in range(3)
    ]


def test_missing_ranks_are_named(tmp_path: Path, threads: Executor) -> None:
    folder = write_job(tmp_path / "job", ranks=RANKS)
    for rank in (3, 4):
        (folder / f"rank{rank}.json").unlink()
    ingest(str(folder), str(tmp_path / "tables"), job="a", executor=threads)
    summary = summarize(window(tmp_path))
    assert summary.problems == ("missing: 2 ranks: 3, 4",)
    assert summary.stragglers == ()


def test_stragglers_need_all_ranks(tmp_path: Path, threads: Executor) -> None:
    folder = write_job(tmp_path / "job", ranks=RANKS, late_us={5: 2000})
    (folder / "rank3.json").unlink()
    ingest(str(folder), str(tmp_path / "tables"), job="a", executor=threads)
    assert summarize(window(tmp_path)).stragglers == ()


def test_a_job_without_steps_is_one_step(tmp_path: Path, threads: Executor) -> None:
    folder = write_job(tmp_path / "job", ranks=RANKS, late_us={5: 2000})
    for path in folder.iterdir():
        trace = json.loads(path.read_text())
        trace["traceEvents"] = [
            event for event in trace["traceEvents"] if "ProfilerStep" not in event.get("name", "")
        ]
        path.write_text(json.dumps(trace))
    ingest(str(folder), str(tmp_path / "tables"), job="a", executor=threads)
    summary = summarize(window(tmp_path))
    assert (summary.steps, [one.rank for one in summary.stragglers]) == ((0,), [5])


BROKEN = {
    "cut gzip": gzip.compress(json.dumps(rank_trace(2, ranks=RANKS)).encode())[:-20],
    "bad UTF-8": json.dumps(rank_trace(2, ranks=RANKS)).encode().replace(b"aten::mul", b"aten::\xff\xfel"),
    "cut JSON": json.dumps(rank_trace(2, ranks=RANKS)).encode()[:-40],
    "no trace": b"{}",
    "empty": b"",
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_trace_is_named_and_others_count(tmp_path: Path, threads: Executor, what: str) -> None:
    folder = write_job(tmp_path / "job", ranks=RANKS)
    (folder / "rank2.json").write_bytes(BROKEN[what])
    files = ingest(str(folder), str(tmp_path / "tables"), job="a", executor=threads)
    assert [one.rank for one in files if one.status is not Status.OK] == [2]
    (problem,) = summarize(window(tmp_path)).problems
    assert problem.startswith("failed: rank 2 (")
    assert "DocumentError" in problem


def test_duplicate_and_foreign_files_do_not_count(tmp_path: Path, threads: Executor) -> None:
    folder = write_job(tmp_path / "job", ranks=RANKS)
    healthy = ingest(str(folder), str(tmp_path / "tables"), job="a", executor=threads)
    assert {one.status for one in healthy} == {Status.OK}
    (folder / "copy-of-rank2.json").write_text(json.dumps(rank_trace(2, ranks=RANKS)))
    (folder / "zz-other.json").write_text(json.dumps(rank_trace(3, ranks=8)))
    files = ingest(str(folder), str(tmp_path / "tables"), job="b", executor=threads)
    assert {one.status: one.rank for one in files if one.status is not Status.OK} == {
        Status.DUPLICATE: 2,
        Status.FOREIGN: 3,
    }
    query = "SELECT * EXCLUDE (job, file) FROM ops ORDER BY ALL"
    assert Database([window(tmp_path, "b")]).query(query) == Database([window(tmp_path)]).query(query)


def test_lost_rows_are_noticed(tmp_path: Path, threads: Executor) -> None:
    read(tmp_path, threads)
    of = window(tmp_path)
    (lost,) = [one for one in of.manifest() if one.rank == 7]
    of.write("steps", lost.part, [])
    problems = summarize(of).problems
    assert any(problem.startswith("lost: rank 7 (") and "ingest it again" in problem for problem in problems)


def test_reading_again_changes_nothing(tmp_path: Path, threads: Executor) -> None:
    read(tmp_path, threads)
    before = content(tmp_path)
    (tmp_path / "tables" / "job=a" / "window=0" / "ops" / "part-0000001.parquet.12.partial").write_bytes(
        b"cut"
    )
    read(tmp_path, threads)
    assert content(tmp_path) == before
    assert not list((tmp_path / "tables").rglob("*.partial"))


def _killed(batch: ingesting.Batch) -> list[RankFile]:
    if any(file.named_rank == 3 for _, file in batch.files):
        os.kill(os.getpid(), signal.SIGKILL)
    return _map_batch(batch)


_map_batch = ingesting.map_batch


def test_a_broken_pool_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingesting, "map_batch", _killed)
    folder = write_job(tmp_path / "job", ranks=RANKS)
    with ProcessPoolExecutor(1) as pool:
        files = ingest(str(folder), str(tmp_path / "tables"), job="a", executor=pool)
    assert len(files) == RANKS
    assert next(one for one in files if one.rank == 3).status is Status.FAILED


def test_unmatched_collectives_are_inconclusive(tmp_path: Path, threads: Executor) -> None:
    folder = write_job(tmp_path / "job", ranks=RANKS, sequences=True)
    other = rank_trace(1, ranks=RANKS, sequences=True)
    for event in other["traceEvents"]:
        if "Seq" in event.get("args", {}):
            event["args"]["Seq"] += 100
    (folder / "rank1.json").write_text(json.dumps(other))
    ingest(str(folder), str(tmp_path / "tables"), job="a", executor=threads)
    summary = summarize(window(tmp_path))
    assert summary.problems == ("unmatched: 6 of 6 collectives lack some of their ranks",)
    assert summary.stragglers == ()


def test_diverging_clocks_are_inconclusive(tmp_path: Path, threads: Executor) -> None:
    folder = write_job(tmp_path / "job", ranks=RANKS)
    for rank in range(RANKS):
        drifting = rank_trace(rank, ranks=RANKS)
        for event in drifting["traceEvents"]:
            event["ts"] *= 1 + rank / 10
        (folder / f"rank{rank}.json").write_text(json.dumps(drifting))
    ingest(str(folder), str(tmp_path / "tables"), job="a", executor=threads)
    (problem,) = summarize(window(tmp_path)).problems
    assert problem.startswith("unaligned clocks")


def test_an_op_that_runs_more_often_on_any_rank_fails(tmp_path: Path, threads: Executor) -> None:
    read(tmp_path, threads, "a")
    read(tmp_path, threads, "b", muls={9: 3})
    tables = str(tmp_path / "tables")
    found = compare(windows_of(tables, "a"), windows_of(tables, "b"))
    (op,) = found.failures
    assert (op.name, op.ranks, op.base, op.head) == ("aten::mul", 1, (2, 2), (2, 3))
    assert found.problems == ()
    back = compare(windows_of(tables, "b"), windows_of(tables, "a"))
    assert back.failures == ()
    assert [op.name for op in back.ops] == ["aten::mul"]


def test_calls_by_chance_do_not_fail(tmp_path: Path, threads: Executor) -> None:
    for job, polls in (("a", (3, 5, 4)), ("b", (6, 7, 8))):
        folder = write_job(tmp_path / f"{job}-0", ranks=RANKS)
        for path in folder.iterdir():
            trace = json.loads(path.read_text())
            steps = [event for event in trace["traceEvents"] if "ProfilerStep" in event.get("name", "")]
            for step, count in zip(steps, polls, strict=True):
                for name in ("aten::poll", "cudaEventQuery"):
                    trace["traceEvents"] += [
                        step | {"name": name, "cat": "cpu_op", "ts": step["ts"] + 200 + at, "dur": 0.5}
                        for at in range(count if name == "aten::poll" else polls[0])
                    ]
            path.write_text(json.dumps(trace))
        ingest(str(folder), str(tmp_path / "tables"), job=job, executor=threads)
    difference = compare([window(tmp_path)], [window(tmp_path, "b")])
    found = {op.name: (op.base, op.head, op.reason) for op in difference.ops}
    assert found["aten::poll"] == ((3, 5), (6, 8), "")
    assert found["cudaEventQuery"] == ((3, 3), (6, 6), "")


def test_a_job_does_not_differ_from_itself(tmp_path: Path, threads: Executor) -> None:
    read(tmp_path, threads, "a")
    read(tmp_path, threads, "b")
    tables = str(tmp_path / "tables")
    found = compare(windows_of(tables, "a"), windows_of(tables, "b"))
    assert (found.ops, found.problems, found.ranks) == ((), (), RANKS)
    assert found.same == 4  # with the step and the collective


@pytest.mark.slow
def test_times_gate_once_enough_nights_agree(tmp_path: Path, threads: Executor) -> None:
    tables = str(tmp_path / "tables")
    gates = frozenset({Gate.TIME})
    for night in range(4):
        read(tmp_path, threads, "a", str(night), gemm_us=1000 + night)
        read(tmp_path, threads, "b", str(night), gemm_us=1200 + night)
        found = compare(windows_of(tables, "a"), windows_of(tables, "b"), gates=gates)
        assert bool(found.failures) is (night == 3)
        assert bool(found.notes) is (night < 3)
    assert [op.name for op in found.failures] == ["gemm"]
    assert not compare(windows_of(tables, "b"), windows_of(tables, "a"), gates=gates).failures


def test_other_ranks_cannot_be_compared(tmp_path: Path, threads: Executor) -> None:
    read(tmp_path, threads, "a")
    folder = write_job(tmp_path / "b", ranks=8)
    ingest(str(folder), str(tmp_path / "tables"), job="b", executor=threads)
    tables = str(tmp_path / "tables")
    found = compare(windows_of(tables, "a"), windows_of(tables, "b"))
    assert found.problems == ("other ranks: 8 ranks only of a, 0 ranks only of b",)


@pytest.mark.slow
def test_commands_read_show_and_compare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # On a real local cluster of processes.
    monkeypatch.chdir(tmp_path)
    write_job(tmp_path / "one", ranks=RANKS, late_us={5: 2000})
    write_job(tmp_path / "two", ranks=RANKS, muls=3)
    (tmp_path / "two" / "rank6.json").unlink()
    assert main(["fleet", "ingest", "one", "--job", "one", "--workers", "2"]) == 0
    more = ["--workers", "1", "--expect", "16", "--window", "night"]
    assert main(["fleet", "ingest", "two", "--job", "two", "-o", ".opprof/fleet", *more]) == 1
    told = capsys.readouterr().out
    assert ".opprof/fleet: 16 ranks of 16 files, with 2 local processes" in told
    assert "missing: 1 rank: 6" in told
    assert main(["fleet", "show", "one"]) == 0
    assert "straggler: rank 5: 2.0 ms late a step (20.0%)" in capsys.readouterr().out
    assert main(["fleet", "show", "two"]) == 1
    assert "INCONCLUSIVE: 1 problem" in capsys.readouterr().out
    assert main(["fleet", "diff", "one", "two"]) == 1
    told = capsys.readouterr().out
    assert "FAILED: aten::mul: runs more often on 15 of 15 ranks (2 → 3 a step)" in told
    assert "INCONCLUSIVE: 2 problems" in told
    assert main(["fleet", "sql", "SELECT count(DISTINCT rank) AS n FROM steps", "--job", "two"]) == 0
    assert capsys.readouterr().out == "n\n15\n"
    assert main(["fleet", "show", "three"]) == 2
    assert ".opprof/fleet has no job three; there are one, two" in capsys.readouterr().err


@pytest.mark.slow
def test_command_options_have_an_effect(
    tmp_path: Path, threads: Executor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    read(tmp_path, threads, "a", "1")
    read(tmp_path, threads, "a", "2", steps=2)
    read(tmp_path, threads, "b", muls=3)

    def told(*arguments: str, code: int = 0) -> str:
        assert main(list(arguments)) == code
        return capsys.readouterr().out

    assert "2 steps" in told("fleet", "show", "a", "--tables", "tables").splitlines()[0]
    assert "3 steps" in told("fleet", "show", "a", "--tables", "tables", "--window", "1").splitlines()[0]
    assert "missing: 1 rank: 16" in told("fleet", "show", "a", "--tables", "tables", "--expect", "17", code=1)
    document = json.loads(told("fleet", "show", "a", "--tables", "tables", "--json"))
    assert fleet_from_document(document) == summarize(window(tmp_path))
    show = ("fleet", "show", "a", "--tables", "tables")
    diff = ("fleet", "diff", "a", "b", "--tables", "tables")
    assert "aten::mul  2 → 3" in told("fleet", "diff", "a", "b", "--tables", "tables", code=1)
    assert "0 of 16" not in told(*diff, "--rows", "-1", code=1)
    assert "passed" in told("fleet", "diff", "a", "b", "--tables", "tables", "--fail-on", "none")
    shown = told("fleet", "diff", "a", "b", "--tables", "tables", "--rows", "0", "--fail-on", "none")
    assert "1 more changed" in shown
    found = json.loads(told("fleet", "diff", "a", "b", "--tables", "tables", "--json", code=1))
    assert [op["name"] for op in found["ops"]] == ["aten::mul"]
    told("fleet", "show", "a", "--tables", "tables", "--html", "a.html")
    told("fleet", "diff", "a", "b", "--tables", "tables", "--html", "diff.html", code=1)
    for page in ("a.html", "diff.html"):
        assert (tmp_path / page).read_text().startswith("<!doctype html>")
    for kept, page, command in ((document, "a.html", show), (found, "diff.html", (*diff, "--rows", "10"))):
        (tmp_path / "kept.json").write_text(json.dumps(kept))
        assert told("show", "kept.json") == told(*command, code=int(kept is found))
        assert told("report", "kept.json", "--format", "html") == (tmp_path / page).read_text()
        assert told("validate", "kept.json").startswith(f"kept.json: ok ({kept['kind'][7:]}, 1")
    query = "SELECT count(DISTINCT job) FROM ops"
    assert told("fleet", "sql", query, "--tables", "tables").splitlines()[1] == "2"
    assert told("fleet", "sql", query, "--tables", "tables", "--job", "a").splitlines()[1] == "1"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ingest", ".", "--job", "a/b"], "'a/b' cannot name a job"),
        (["ingest", ".", "--job", "a"], "has no traces"),
        (["ingest", ".", "--job", "a", "--engine", "ray"], "--engine ray: give local, or a Dask scheduler"),
        (["diff", "a", "b", "--fail-on", "luck"], "--fail-on luck: give exact, time"),
        (["show", "a", "--tables", "nowhere"], "nowhere has no job a. Make one: opprof fleet ingest"),
    ],
    ids=["job", "no traces", "engine", "gate", "tables"],
)
def test_usage_error_is_reported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if arguments[0] == "ingest":
        with pytest.raises(UsageError, match=words.partition(":")[0].replace("(", r"\(")):
            _ingest_in_thread(arguments)
        return
    assert main(["fleet", *arguments]) == 2
    assert words in capsys.readouterr().err


def _ingest_in_thread(arguments: list[str]) -> None:
    """The same without a cluster, which takes seconds to start."""
    from pytest_opprof.fleet.engine import engine

    if "--engine" in arguments:
        with engine(arguments[-1]):
            pass
    with ThreadPoolExecutor(1) as executor:
        ingest(arguments[1], "tables", job=arguments[3], executor=executor)


def test_missing_extra_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["fleet", "ingest", ".", "--job", "a"]) == 2
    assert "pip install 'pytest-opprof[fleet]'" in capsys.readouterr().err
