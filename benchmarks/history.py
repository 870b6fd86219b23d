"""Times a history of 10,000 runs of 500 tests beside json reading the same lines; and tables of 100,000 runs.

``python -m benchmarks.history 1000000 10`` makes tables of 1,000,000 runs of 10 repositories.
"""

from __future__ import annotations

import itertools
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from benchmarks.table import Row, as_text, nanoseconds
from pytest_opprof.history.change_points import shifts
from pytest_opprof.history.lines import trend_lines
from pytest_opprof.history.log import HistoryLog
from pytest_opprof.history.parquet import COLUMNS, ToldRun, add_runs, compact
from pytest_opprof.history.parquet_query import HistoryTables
from pytest_opprof.history.reader import HistoryReader
from pytest_opprof.history.record import (
    Counts,
    Definition,
    RunHead,
    RunRecord,
    counts_definition,
    record_of,
)
from pytest_opprof.history.trend import trend_of, wanted_metrics
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import parse_path
from pytest_opprof.results.files import write_run
from pytest_opprof.results.run import Commit, OpRow, Run, TestResult
from pytest_opprof.results.samples import Samples

_RUNS: Final = 10_000
_RUNS_OF_TABLES: Final = 100_000
_RUNS_A_PART: Final = 700  # about a week, with a run every 15 minutes; then a month's parts are compacted
_TESTS: Final = 500
_OPS: Final = 20
_STEPS: Final = 3
_CHANGES_EVERY: Final = 1_000  # runs; then each test's counts change
_FIRST: Final = datetime(2025, 1, 1, tzinfo=UTC)
_TIME: Final = "total.self_cpu_time_total"


def rows(*, quick: bool) -> list[Row]:
    """Write such a history with the usual writer, and time an append and queries."""
    count = _RUNS // 20 if quick else _RUNS
    with tempfile.TemporaryDirectory(prefix="opprof-bench-") as folder:
        log = HistoryLog(Path(folder) / "history")
        start = time.perf_counter_ns()
        log.append(_records(count))
        wrote_ns = time.perf_counter_ns() - start
        size = sum(segment.stat().st_size for segment in log.segments())
        json_ns = _json_ns(log)
        shifts([1.0] * 20)  # the first call imports ruptures, which must not count
        what = f"{count:,} runs of {_TESTS} tests"
        read = f"json reads the {size / 2**20:.0f} MiB {nanoseconds(json_ns)}"
        asked_ns = min(_asked_ns(log) for _ in range(3))
        append_ns, document_ns = _appended_ns(log, Path(folder))
    of_tables = _rows_of_tables(_RUNS_OF_TABLES // 20 if quick else _RUNS_OF_TABLES, log_bytes=size / count)
    return [
        *of_tables,
        Row(
            what=f"history: {what}, written at once",
            ours=nanoseconds(wrote_ns),
            peer=f"{size / count / 1024:.1f} KiB a run",
            figure=wrote_ns / count / 1e6,
            unit="ms a run",
        ),
        Row(
            what=f"history: append one run to {what}",
            ours=nanoseconds(append_ns),
            peer=f"its run document {nanoseconds(document_ns)}",
            figure=document_ns / append_ns,
            at_least=1,
        ),
        Row(
            what=f"history: a trend with change points of {what}",
            ours=nanoseconds(asked_ns),
            peer=read,
            figure=asked_ns / json_ns,
            at_most=5,
        ),
    ]


def _rows_of_tables(count: int, *, log_bytes: float = 0, repos: int = 1) -> list[Row]:
    """Query tables of so many runs, the same in each repository, for a trend and for all changes."""
    what = f"history: {count:,} runs of {_TESTS} tests as Parquet"
    with tempfile.TemporaryDirectory(prefix="opprof-bench-") as root:
        start = time.perf_counter_ns()
        for some in _parts(_records(count // repos, apart=timedelta(minutes=15))):
            add_runs(root, "encoder0", some)
        compact(root)
        wrote_ns = time.perf_counter_ns() - start
        for table, repo in itertools.product(COLUMNS, range(1, repos)):
            folder = Path(root) / table
            shutil.copytree(folder / "repo=encoder0", folder / f"repo=encoder{repo}")
        size = sum(path.stat().st_size for path in Path(root).rglob("*.parquet"))
        trend_ns = min(_trend_of_tables_ns(root) for _ in range(3))
        changes_ns = min(_changes_ns(root) for _ in range(3))
    return [
        Row(
            what=f"{what}: disk, and {count // repos:,} of them written",
            ours=f"{size / 2**20:,.0f} MiB, {nanoseconds(wrote_ns)}",
            peer=f"the log {log_bytes * count / 2**20:,.0f} MiB" if log_bytes else "none",
            figure=log_bytes * count / size if log_bytes else size / count / 1024,
            at_least=4 if log_bytes else None,
            unit="x" if log_bytes else "KiB a run",
        ),
        _seconds(f"{what}: a trend", trend_ns, at_most=0.5 if log_bytes else None),
        _seconds(
            f"{what}: where an op's count changed, all tests", changes_ns, at_most=3 if log_bytes else None
        ),
    ]


def _seconds(what: str, took_ns: int, *, at_most: float | None) -> Row:
    return Row(
        what=what,
        ours=nanoseconds(took_ns),
        peer="",
        figure=took_ns / 1e9,
        at_most=at_most,
        unit="s",
    )


def _parts(records: Iterator[RunRecord]) -> Iterator[list[ToldRun]]:
    while some := [ToldRun(record=record) for record in itertools.islice(records, _RUNS_A_PART)]:
        yield some


def _trend_of_tables_ns(root: str) -> int:
    """The time of `opprof history --tables ROOT TEST ops.count`, without printing."""
    node_id, start = _node_id(_TESTS // 2), time.perf_counter_ns()
    tables = HistoryTables(root)
    assert ("encoder0", node_id) in tables.tests()
    results = tables.results("encoder0", node_id)
    assert trend_of(node_id, parse_path("ops.count", where="here"), results).changes
    return time.perf_counter_ns() - start


def _changes_ns(root: str) -> int:
    start = time.perf_counter_ns()
    assert HistoryTables(root).changes(parse_path("aten::op_3.count", where="here"))
    return time.perf_counter_ns() - start


def _records(count: int, *, apart: timedelta = timedelta(hours=1)) -> Iterator[RunRecord]:
    """Consecutive runs: times are noise, and each test's counts change now and then, not all at once."""
    source = random.Random(0)  # noqa: S311  # no secret
    environment = Definition.of(
        {"fingerprint": {"python": "3.12", "torch": "2.13.0", "cpu_model": "a processor"}}
    )
    definitions: dict[tuple[int, int], Definition] = {}
    for run in range(count):
        tests = []
        for test in range(_TESTS):
            version = (run + test) // _CHANGES_EVERY
            if (test, version) not in definitions:
                definitions[test, version] = counts_definition(_counts(test, version))
            tests.append((definitions[test, version], (source.randrange(4_000_000, 4_400_000),)))
        created = _FIRST + run * apart
        yield RunRecord(
            head=RunHead(
                run_id=f"{run:016x}",
                created=created,
                committed=created,
                commit=Commit(id=f"{run:040x}", dirty=False, branch="main"),
                name="main",
            ),
            environment=environment,
            tests=tuple(tests),
        )


def _counts(test: int, version: int) -> Counts:
    ops = {f"aten::op_{op}": {"count": Samples.constant(op + version, steps=_STEPS)} for op in range(1, _OPS)}
    total = sum(metrics["count"].low for metrics in ops.values())
    return Counts(
        node_id=_node_id(test),
        steps=_STEPS,
        sources=("ops", "ranges"),
        totals={"ops.count": Samples.constant(total, steps=_STEPS)},
        ops=ops,
        measured=(_TIME,),
    )


def _node_id(test: int) -> str:
    return (
        f"tests/models/test_layer_{test // 20}.py::TestLayer::test_forward_and_backward[{test % 20}-float32]"
    )


def _json_ns(log: HistoryLog) -> int:
    """The time to read every line with json alone."""
    start = time.perf_counter_ns()
    for segment in log.segments():
        for line in segment.read_bytes().splitlines():
            json.loads(line)
    return time.perf_counter_ns() - start


def _asked_ns(log: HistoryLog) -> int:
    """The time of `opprof history TEST`, without printing."""
    start = time.perf_counter_ns()
    reader = HistoryReader(log)
    reader.tests()
    results = reader.results(_node_id(_TESTS // 2))
    trends = [trend_of(_node_id(_TESTS // 2), path, results) for path in wanted_metrics(None, results)]
    assert list(trend_lines(trends, last=20, width=120))
    return time.perf_counter_ns() - start


def _appended_ns(log: HistoryLog, folder: Path) -> tuple[int, int]:
    """The time to append a run, and to write its JSON file; the fastest of five."""
    append, document = [], []
    for number in range(5):
        run = _run(number)
        start = time.perf_counter_ns()
        log.append([record_of(run, committed=run.created)])
        middle = time.perf_counter_ns()
        write_run(folder / "run.json", run)
        append.append(middle - start)
        document.append(time.perf_counter_ns() - middle)
    return min(append), min(document)


def _run(number: int) -> Run:
    def samples(value: int) -> Samples:
        return Samples.constant(value, steps=_STEPS)

    ops = tuple(
        OpRow(
            name=f"aten::op_{op}",
            kind=OpKind.OP,
            metrics={
                "count": samples(op),
                "cpu_time_total": samples(2_000),
                "self_cpu_time_total": samples(1_000),
            },
        )
        for op in range(1, _OPS)
    )
    totals = {"ops.count": samples(sum(range(_OPS))), _TIME: samples(4_000_000)}
    tests = tuple(
        TestResult(
            node_id=_node_id(test),
            sources=("ops", "ranges"),
            steps=_STEPS,
            processes=2,
            totals=totals,
            ops=ops,
        )
        for test in range(_TESTS)
    )
    return Run(
        run_id=f"a{number:015x}",
        created=datetime(2030, 1, 1, tzinfo=UTC) + timedelta(hours=number),
        opprof_version="0.1.0",
        name="main",
        commit=Commit(id=f"{number:040x}", dirty=False, branch="main"),
        tests=tests,
    )


if __name__ == "__main__":
    print(as_text(_rows_of_tables(int(sys.argv[1]), repos=int(sys.argv[2])), markdown=False))
