"""The tables agree with the log, over many repositories and query conditions."""

import itertools
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.documents.histories import FIRST_DAY, log_of, record_on_day, run_on_day

from pytest_opprof.errors import StoreError, UsageError
from pytest_opprof.history import parquet
from pytest_opprof.history.parquet import ToldRun, add_runs, compact, run_ids, times_of
from pytest_opprof.history.parquet_query import Change, HistoryTables
from pytest_opprof.history.reader import HistoryReader
from pytest_opprof.history.record import Definition, RunRecord, record_of
from pytest_opprof.history.trend import trend_of
from pytest_opprof.metrics import parse_path
from pytest_opprof.parquet_files import write_parquet
from pytest_opprof.results.run import Commit, Run
from pytest_opprof.results.samples import Samples

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

MULS = parse_path("aten::mul.count", where="a test")


def record(day: int, *, torch: str = "2.13.0", **others: object) -> RunRecord:
    environment = Definition.of({"fingerprint": {"torch": torch, "python": "3.13"}})
    return replace(record_on_day(day, committed=None, **others), environment=environment)


def runs_of(muls: Sequence[int], releases: Sequence[str]) -> list[RunRecord]:
    both = zip(muls, releases, strict=True)
    return [record(day, mul=mul, torch=torch) for day, (mul, torch) in enumerate(both)]


def add(root: Path, repo: str, records: Sequence[RunRecord]) -> int:
    return add_runs(str(root), repo, [ToldRun(record=one) for one in records])


def told(changes: Sequence[Change]) -> list[tuple[str, str, float, float]]:
    return [(change.repo, change.run.run_id, change.before.mean, change.after.mean) for change in changes]


def files_of(root: Path) -> list[Path]:
    return sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())


def test_trend_matches_the_log(tmp_path: Path) -> None:
    log = log_of(tmp_path, [2, 2, 3, 2, 2])
    reader = HistoryReader(log)
    of_log = list(reader.results("t.py::test_0"))
    assert add(tmp_path / "tables", "encoder", list(log.records())) == 5
    tables = HistoryTables(str(tmp_path / "tables"))
    assert tables.tests() == [("encoder", "t.py::test_0")]
    assert list(tables.results("encoder", "t.py::test_0")) == of_log
    assert not tables.results("encoder", "t.py::test_0", name="other")


def test_earlier_runs_are_read_on_request(tmp_path: Path) -> None:
    log = log_of(tmp_path, [2] * 80)
    add(tmp_path / "tables", "encoder", list(log.records()))
    results = HistoryTables(str(tmp_path / "tables")).results("encoder", "t.py::test_0")
    of_log = HistoryReader(log).results("t.py::test_0")
    assert [results[at] for at in reversed(range(80))] == [of_log[at] for at in reversed(range(80))]


@pytest.mark.parametrize("batches", [1, 7], ids=["one part", "a part a run"])
@pytest.mark.parametrize("is_compacted", [False, True])
def test_each_change_is_found_once(tmp_path: Path, batches: int, is_compacted: bool) -> None:
    records = [record(day, mul=mul) for day, mul in enumerate([2, 2, 3, 3, 2, 2, 5])]
    for at in range(batches):
        add(tmp_path, "encoder", records[at::batches])
    if is_compacted:
        assert compact(str(tmp_path)) == (1, batches if batches > 1 else 0)
        assert len(list((tmp_path / "runs").rglob("*.parquet"))) == 1
    assert run_ids(str(tmp_path), "encoder") == {one.head.run_id for one in records}
    assert told(HistoryTables(str(tmp_path)).changes(MULS)) == [
        ("encoder", "run00002", 2, 3),
        ("encoder", "run00004", 3, 2),
        ("encoder", "run00006", 2, 5),
    ]


def test_a_count_that_varies_changes_as_in_the_log(tmp_path: Path) -> None:
    ranges = [(142, 191), (136, 198), (136, 198), (142, 142), (140, 150), (151, 160)]
    records = [record_of(varying(day, *each), committed=None) for day, each in enumerate(ranges)]
    add(tmp_path, "encoder", records)
    tables = HistoryTables(str(tmp_path))
    found = [change.run.run_id for change in tables.changes(MULS)]
    assert found == ["run00003", "run00004", "run00005"]
    trend = trend_of("t.py::test_0", MULS, tables.results("encoder", "t.py::test_0"))
    assert [point.result.run.run_id for point in trend.points() if point.is_change] == found


def varying(day: int, low: int, high: int) -> Run:
    run = run_on_day(day)
    (test,) = run.tests
    samples = Samples(steps=test.steps, total=low + high + high, low=low, high=high)
    ops = tuple(
        replace(row, metrics={**row.metrics, "count": samples}) if row.name == "aten::mul" else row
        for row in test.ops
    )
    return replace(run, tests=(replace(test, ops=ops),))


def test_a_run_that_comes_late_stands_where_its_commit_does(tmp_path: Path) -> None:
    add(tmp_path, "encoder", [record(day, mul=2) for day in (0, 1, 3)])
    add(tmp_path, "encoder", [record(2, mul=9)])
    changes = HistoryTables(str(tmp_path)).changes(MULS)
    assert told(changes) == [("encoder", "run00002", 2, 9), ("encoder", "run00003", 9, 2)]
    compact(str(tmp_path))
    assert HistoryTables(str(tmp_path)).changes(MULS) == changes


def on(day: int, mul: int, branch: str, torch: str = "2.13.0") -> RunRecord:
    return record(
        day, mul=mul, torch=torch, commit=Commit(id=f"{day:040x}", dirty=False, branch=branch), name=branch
    )


def test_a_branch_changes_nothing_of_the_runs_around_it(tmp_path: Path) -> None:
    add(tmp_path, "encoder", [on(day, 7 if day == 4 else 5, "b" if day == 4 else "a") for day in range(9)])
    there_and_back = [("encoder", "run00004", 5, 7), ("encoder", "run00005", 7, 5)]
    assert told(HistoryTables(str(tmp_path)).changes(MULS)) == there_and_back
    later = HistoryTables(str(tmp_path), where=f"created >= '{FIRST_DAY + timedelta(days=6):%Y-%m-%d}'")
    assert told(later.changes(MULS)) == []
    until = f"created >= '{FIRST_DAY + timedelta(days=5):%Y-%m-%d}' AND run < 'run00008'"
    assert told(HistoryTables(str(tmp_path), where=until).changes(MULS)) == there_and_back[1:]


@settings(max_examples=40)
@given(
    runs=st.lists(
        st.tuples(st.integers(1, 2), st.sampled_from("ab"), st.sampled_from(["2.12", "2.13"])),
        min_size=6,
        max_size=9,
    ),
    parts=st.integers(1, 3),
    days=st.tuples(st.integers(0, 2), st.integers(3, 8)),
    name=st.sampled_from([None, "a"]),
)
@pytest.mark.slow
def test_branches_names_and_environments_that_interleave_have_each_change_where_it_is(
    runs: list[tuple[int, str, str]], parts: int, days: tuple[int, int], name: str | None
) -> None:
    first, last = days
    of_name = [(day, mul) for day, (mul, branch, _) in enumerate(runs) if name in {None, branch}]
    selected = [(day, mul) for day, mul in of_name if first <= day <= last]
    earlier = [(day, mul) for day, mul in of_name if selected and day < first]
    expected = [
        ("encoder", f"run{day:05}", was, mul)
        for (_, was), (day, mul) in itertools.pairwise(earlier[-1:] + selected)
        if mul != was
    ]
    with tempfile.TemporaryDirectory() as folder:
        records = [on(day, *each) for day, each in enumerate(runs)]
        for part in range(parts):
            add(Path(folder), "encoder", records[part::parts])
        begin, end = (f"'{FIRST_DAY + timedelta(days=day):%Y-%m-%d}'" for day in (first, last + 1))
        tables = HistoryTables(folder, where=f"created >= {begin} AND created < {end}")
        assert told(tables.changes(MULS, name=name)) == expected


def test_change_of_a_release_is_found_in_every_repository(tmp_path: Path) -> None:
    releases = ["2.9.1", "2.9.1", "2.14.0", "2.14.1"]
    add(tmp_path, "encoder", runs_of([2, 2, 4, 4], releases))
    add(tmp_path, "decoder", runs_of([1, 6, 6, 6], releases))
    changes = HistoryTables(str(tmp_path), where="torch >= '2.14'").changes(MULS)
    assert told(changes) == [("encoder", "run00002", 2, 4)], "and 2.9 is older than 2.14"
    assert changes[0].because == ("torch 2.9.1 -> 2.14.0",)
    old = HistoryTables(str(tmp_path), where="torch < '2.14'").changes(MULS)
    assert told(old) == [("decoder", "run00001", 1, 6)]
    assert told(HistoryTables(str(tmp_path), where="repo = 'decoder'").changes(MULS)) == told(old)
    assert HistoryTables(str(tmp_path), where="torch = '2.14.1' AND NOT dirty").runs == 2
    assert HistoryTables(str(tmp_path), where=f"created >= '{FIRST_DAY:%Y-%m-%d}'").runs == 8


def test_absent_op_counts_as_zero(tmp_path: Path) -> None:
    add(tmp_path, "encoder", [record(0, mul=0), record(1, mul=2)])
    assert told(HistoryTables(str(tmp_path)).changes(MULS)) == [("encoder", "run00001", 0, 2)]
    every_op = parse_path("aten::*.count", where="a test")
    assert told(HistoryTables(str(tmp_path)).changes(every_op)) == [("encoder", "run00001", 0, 2)]


def test_other_tests_and_names_are_separate(tmp_path: Path) -> None:
    add(tmp_path, "encoder", [record(0, tests=2), record(1, mul=3, tests=2, name="nightly")])
    tables = HistoryTables(str(tmp_path))
    assert {change.node_id for change in tables.changes(MULS)} == {"t.py::test_0", "t.py::test_1"}
    assert tables.changes(MULS, name="main") == []


def test_op_times_match_the_run(tmp_path: Path) -> None:
    run = run_on_day(0)
    (test,) = run.tests
    # as from a later release with unknown metrics; and views, which are not a metric
    rows = (replace(row, metrics={**row.metrics, "views": row.count, "later": row.count}) for row in test.ops)
    run = replace(run, tests=(replace(test, ops=tuple(rows)),))
    told_run = ToldRun(
        record=record_of(run, committed=None), times=times_of(run, record_of(run, committed=None))
    )
    add_runs(str(tmp_path), "encoder", [told_run])
    path = parse_path("work.cpu_time_total", where="a test")
    expected = sum(row.samples(path.metric.name).low for row in run.tests[0].ops if row.name == "work")
    assert expected
    assert HistoryTables(str(tmp_path)).times("encoder", "t.py::test_0", path) == {run.run_id: expected}


def test_the_same_runs_make_the_same_files(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        add(tmp_path / folder, "encoder", [record(day) for day in range(40)])
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    assert all(
        (tmp_path / "a" / one).read_bytes() == (tmp_path / "b" / one).read_bytes()
        for one in files_of(tmp_path / "a")
    )
    assert {one.parts[2] for one in files_of(tmp_path / "a")} == {"month=2026-01", "month=2026-02"}


def test_an_interrupted_import_has_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(tmp_path, "encoder", [record(0)])

    def full(address: str, content: object, *, group: int) -> None:
        if "/runs/" in address:
            raise OSError(28, "No space left on device")
        write_parquet(address, content, group=group)

    monkeypatch.setattr(parquet, "write_parquet", full)
    with pytest.raises(StoreError, match="cannot be written: No space left on device"):
        add(tmp_path, "encoder", [record(1, mul=7, tests=2)])
    assert HistoryTables(str(tmp_path)).changes(MULS) == []
    assert HistoryTables(str(tmp_path)).tests() == [("encoder", "t.py::test_0")]
    assert run_ids(str(tmp_path), "encoder") == {"run00000"}
    monkeypatch.undo()
    add(tmp_path, "encoder", [record(1, mul=7)])
    assert told(HistoryTables(str(tmp_path)).changes(MULS)) == [("encoder", "run00001", 2, 7)]


@pytest.mark.parametrize("allowed", [0, 3, 5])
def test_killed_compaction_changes_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: int
) -> None:
    """Killed before the first part is removed; after all parts of the runs table; and in the next table."""
    for day, mul in enumerate([2, 3, 3]):
        add(tmp_path, "encoder", [record(day, mul=mul)])
    before = (
        HistoryTables(str(tmp_path)).changes(MULS),
        list(HistoryTables(str(tmp_path)).results("encoder", "t.py::test_0")),
    )

    class Killed(BaseException):
        pass

    removed: list[str] = []
    remove = pytest.importorskip("fsspec.implementations.local").LocalFileSystem.rm_file

    def killed(files: object, path: str) -> None:
        if len(removed) == allowed:
            raise Killed
        removed.append(path)
        remove(files, path)

    local = pytest.importorskip("fsspec.implementations.local")
    with monkeypatch.context() as patched:
        patched.setattr(local.LocalFileSystem, "rm_file", killed)
        with pytest.raises(Killed):
            compact(str(tmp_path))
    tables = HistoryTables(str(tmp_path))
    assert (tables.changes(MULS), list(tables.results("encoder", "t.py::test_0"))) == before
    compact(str(tmp_path))
    assert all(len(list((tmp_path / table).rglob("*.parquet"))) == 1 for table in parquet.COLUMNS)


def test_invalid_query_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no runs: take some in with opprof history --tables"):
        HistoryTables(str(tmp_path))
    add(tmp_path, "encoder", [record(0)])
    with pytest.raises(UsageError, match=r"DuckDB refuses --where .*torhc"):
        HistoryTables(str(tmp_path), where="torhc >= '2.14'")
    with pytest.raises(UsageError, match=r"Cannot compare .* \(all columns but dirty are text, as in .*\)$"):
        HistoryTables(str(tmp_path), where="torch >= 2.14")
    with pytest.raises(UsageError, match="no run has torch > '9'"):
        HistoryTables(str(tmp_path), where="torch > '9'")
    with pytest.raises(UsageError, match="name one test to see its trend"):
        HistoryTables(str(tmp_path)).changes(parse_path("aten::mul.cpu_time_total", where="a test"))
    part = next((tmp_path / "spans").rglob("*.parquet"))
    part.write_bytes(b"no table")
    with pytest.raises(StoreError, match="part-"):
        HistoryTables(str(tmp_path)).changes(MULS)


def test_tables_may_be_in_an_object_store(tmp_path: Path) -> None:
    del tmp_path
    root = "memory://history"
    assert add_runs(root, "encoder", [ToldRun(record=record(day, mul=day // 2)) for day in range(4)]) == 4
    assert run_ids(root, "encoder") == {f"run{day:05}" for day in range(4)}
    assert told(HistoryTables(root).changes(MULS)) == [("encoder", "run00002", 0, 1)]
