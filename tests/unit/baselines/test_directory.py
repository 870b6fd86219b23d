"""Baselines in a folder."""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from strategies import simple_run, simple_test

from pytest_opprof.baselines import directory
from pytest_opprof.baselines.directory import DirectoryStore, open_store
from pytest_opprof.errors import DocumentError, StoreError, UsageError
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Commit, Measurement, MeasurementStatus, Run, TestResult

NOBODY = Collected()
A, B = (simple_test({"aten::mul": 1}, node_id=f"t.py::test_{name}") for name in "ab")


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return open_store("dir:.opprof", root=tmp_path)


def run_of(number: int, *tests: TestResult, dirty: bool = False) -> Run:
    """A run of the commit with this number, one day later for each."""
    return simple_run(
        *(tests or (A,)),
        created=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number),
        commit=Commit(id=f"{number:040x}", dirty=dirty),
    )


def test_saved_run_is_found_again(store: DirectoryStore, tmp_path: Path) -> None:
    saved = store.save("main", run_of(1), collected=NOBODY)
    assert saved.path == tmp_path / ".opprof" / "main" / f"{1:040x}.json"
    assert store.names() == ("main",)
    (entry,) = store.entries("main")
    assert (entry.commit, entry.is_dirty) == (f"{1:040x}", False)
    assert entry.created == run_of(1).created
    assert store.load(entry) == replace(run_of(1), name="main")


def test_newest_entry_comes_first(store: DirectoryStore) -> None:
    for number in (2, 3, 1):
        store.save("main", run_of(number), collected=NOBODY)
    assert [entry.commit for entry in store.entries("main")] == [f"{n:040x}" for n in (3, 2, 1)]


def test_uncommitted_changes_have_a_key_of_their_own(store: DirectoryStore) -> None:
    store.save("main", run_of(1), collected=NOBODY)
    saved = store.save("main", run_of(1, dirty=True), collected=NOBODY)
    assert "the work tree has uncommitted changes, so it is kept as '-dirty'" in saved.notes
    assert {entry.key for entry in store.entries("main")} == {f"{1:040x}", f"{1:040x}-dirty"}


def test_run_without_git_is_kept_under_its_time(store: DirectoryStore) -> None:
    saved = store.save("main", simple_run(A), collected=NOBODY)
    assert saved.path is not None
    assert saved.path.name == "20260102T000000.000000Z-abc.json"
    assert "there is no commit to keep it under, so it is kept under its time" in saved.notes


def test_selection_replaces_only_what_ran(store: DirectoryStore) -> None:
    store.save("main", run_of(1, A, B), collected=NOBODY)
    again = simple_test({"aten::mul": 2}, node_id=A.node_id)
    saved = store.save("main", run_of(1, again), collected=NOBODY)
    (entry,) = store.entries("main")
    kept = store.load(entry)
    assert kept.test(A.node_id) == again
    assert kept.test(B.node_id) is not None
    assert saved.notes == ("1 test that did not run kept from main@0000000",)


def test_tests_that_were_not_measured_are_not_saved(store: DirectoryStore) -> None:
    broken = replace(B, measurement=Measurement(status=MeasurementStatus.ERROR, reason="x"))
    saved = store.save("main", run_of(1, A, broken), collected=NOBODY)
    assert [test.node_id for test in saved.run.tests] == [A.node_id]
    assert saved.notes == ("1 of 2 tests not saved: they did not pass or were not measured",)


def test_nothing_measured_saves_nothing(store: DirectoryStore, tmp_path: Path) -> None:
    broken = replace(A, measurement=Measurement(status=MeasurementStatus.ERROR, reason="x"))
    saved = store.save("main", run_of(1, broken), collected=NOBODY)
    assert saved.path is None
    assert "nothing was saved" in saved.notes
    assert not (tmp_path / ".opprof").exists()


def test_old_runs_are_pruned(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "KEPT_RUNS", 3)
    for number in range(5):
        store.save("main", run_of(number), collected=NOBODY)
    assert [entry.commit for entry in store.entries("main")] == [f"{n:040x}" for n in (4, 3, 2)]


def test_saved_run_is_never_pruned(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "KEPT_RUNS", 1)
    store.save("main", run_of(5), collected=NOBODY)
    saved = store.save("main", run_of(1), collected=NOBODY)
    assert saved.path is not None
    assert saved.path.exists()


def test_large_runs_are_packed(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save("main", run_of(1), collected=NOBODY)
    monkeypatch.setattr(directory, "_PACKED_FROM", 0)
    saved = store.save("main", run_of(1), collected=NOBODY)
    assert saved.path is not None
    assert saved.path.suffix == ".gz"
    (entry,) = store.entries("main")
    assert entry.created == run_of(1).created
    assert store.load(entry).tests == (A,)


def test_damaged_file_is_not_replaced(store: DirectoryStore) -> None:
    saved = store.save("main", run_of(1), collected=NOBODY)
    assert saved.path is not None
    saved.path.write_text("{")
    with pytest.raises(DocumentError, match="this is no JSON"):
        store.save("main", run_of(1), collected=NOBODY)
    assert saved.path.read_text() == "{"


def test_damaged_earlier_run_is_only_said(store: DirectoryStore) -> None:
    saved = store.save("main", run_of(1), collected=NOBODY)
    assert saved.path is not None
    saved.path.write_text("{")
    later = store.save("main", run_of(2), collected=NOBODY)
    assert later.notes[0].startswith("no test was carried over: ")


def test_entry_of_a_damaged_file_has_its_time(store: DirectoryStore) -> None:
    saved = store.save("main", run_of(1), collected=NOBODY)
    assert saved.path is not None
    saved.path.with_name("damaged.json.gz").write_bytes(b"\x1f\x8bxx")
    os.utime(saved.path.with_name("damaged.json.gz"), (0, 0))
    assert [entry.key for entry in store.entries("main")] == [f"{1:040x}", "damaged"]


@pytest.mark.parametrize("name", ["feature/x y", "a.b", "日本", "100%", "x@y"])
def test_names_of_branches_are_names(store: DirectoryStore, name: str) -> None:
    store.save(name, run_of(1), collected=NOBODY)
    assert store.names() == (name,)
    assert store.load(store.entries(name)[0]).name == name


@pytest.mark.parametrize("name", ["", ".", "..", ".git", "a\nb", " a", "x" * 101, "traces", "\x1b[31m"])
def test_what_is_no_name_is_refused(store: DirectoryStore, name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--opprof-save="):
        store.save(name, run_of(1), collected=NOBODY)
    assert list(tmp_path.iterdir()) == []


def test_traces_are_no_baseline(store: DirectoryStore, tmp_path: Path) -> None:
    store.save("main", run_of(1), collected=NOBODY)
    traces = tmp_path / ".opprof" / "traces"
    traces.mkdir()
    (traces / "test_x.json.gz").write_bytes(b"")
    assert store.names() == ("main",)


def test_store_ignores_itself(store: DirectoryStore, tmp_path: Path) -> None:
    store.save("main", run_of(1), collected=NOBODY)
    ignore = tmp_path / ".opprof" / ".gitignore"
    assert "*/\n" in ignore.read_text()
    ignore.write_text("mine")
    store.save("main", run_of(2), collected=NOBODY)
    assert ignore.read_text() == "mine"


def test_missing_store_is_empty(store: DirectoryStore) -> None:
    assert store.names() == ()
    assert store.entries("main") == ()


@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        ("s3://bucket/x", "no store of the kind 's3'; this release has dir:PATH"),
        ("git:", "no store of the kind 'git'"),
        ("dir:", "the path is missing"),
        ("", "the path is missing"),
    ],
)
def test_other_stores_are_refused(uri: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        open_store(uri, root=tmp_path)


def test_path_alone_is_a_folder(tmp_path: Path) -> None:
    assert open_store("some/where", root=tmp_path).uri == "dir:some/where"
    assert open_store(f"dir:{tmp_path}/x", root=Path("/else")).folder == tmp_path / "x"


def test_file_in_the_way_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / ".opprof").write_text("")
    store = open_store("dir:.opprof", root=tmp_path)
    with pytest.raises(StoreError, match="a part of its path is a file, not a folder"):
        store.save("main", run_of(1), collected=NOBODY)
