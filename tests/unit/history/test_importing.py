"""Older runs, found in files and folders, each once."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.documents.histories import run_on_day
from support.documents.stores import NOBODY, A, B
from support.documents.strategies import simple_run

from pytest_opprof.baselines.archive import open_store
from pytest_opprof.baselines.git import Git
from pytest_opprof.errors import DocumentError, StoreError
from pytest_opprof.history.importing import find_runs
from pytest_opprof.results.files import write_run


def test_folders_and_files_are_read(tmp_path: Path) -> None:
    write_run(tmp_path / "store" / "main" / "b.json", run_on_day(2))
    write_run(tmp_path / "store" / "release" / "a.json.gz", run_on_day(1))
    write_run(tmp_path / "run.json", run_on_day(3))
    (tmp_path / "store" / "broken.json").write_text("{}")
    found = find_runs(
        [tmp_path / "store", tmp_path / "run.json", tmp_path / "run.json"],
        known={"run00001"},
        git=Git(tmp_path),
    )
    assert [record.head.run_id for record in found.records] == ["run00002", "run00003"]
    assert len(found.known) == 1
    (note,) = found.notes
    assert "broken.json" in note


def test_our_own_files_beside_runs_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".opprof" / ".state").mkdir(parents=True)
    for name in (".state/last.json", "accepted.json"):
        (tmp_path / ".opprof" / name).write_text("{}")
    assert find_runs([tmp_path], known=(), git=Git(tmp_path)).notes == ()


def test_all_shards_of_a_stored_run_are_imported(tmp_path: Path) -> None:
    store = open_store("dir:.opprof", root=tmp_path)
    commit = run_on_day(2).commit
    store.save("main", run_on_day(1), collected=NOBODY)
    for day, test in ((2, A), (3, B)):
        store.save("main", replace(run_on_day(day, commit=commit), tests=(test,)), collected=NOBODY)
    found = find_runs([tmp_path / ".opprof"], known=(), git=Git(tmp_path))
    heads = [(record.head.run_id, record.head.commit, record.head.name) for record in found.records]
    assert heads[1:] == [("run00002", commit, "main"), ("run00003", commit, "main")]
    assert [len(record.tests) for record in found.records] == [1, 1, 1], "that of the first commit once"


def test_named_file_must_be_a_run(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(DocumentError, match=r"bad\.json"):
        find_runs([tmp_path / "bad.json"], known=(), git=Git(tmp_path))
    with pytest.raises(StoreError, match="there is no such file"):
        find_runs([tmp_path / "none.json"], known=(), git=Git(tmp_path))


def test_unknown_commit_has_no_time(tmp_path: Path) -> None:
    write_run(tmp_path / "run.json", simple_run(commit=run_on_day(1).commit))
    (record,) = find_runs([tmp_path / "run.json"], known=(), git=Git(tmp_path)).records
    assert record.head.committed is None
    assert record.head.created == datetime(2026, 1, 2, tzinfo=UTC)
