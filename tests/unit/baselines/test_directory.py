"""Baselines in a folder: promises that other kinds of stores do not make."""

import os
from pathlib import Path

import pytest
from support.documents.stores import NOBODY, A, key, run_of

from pytest_opprof.baselines import directory
from pytest_opprof.baselines.archive import Archive, open_store
from pytest_opprof.errors import StoreError, UsageError


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Archive:
    monkeypatch.chdir(tmp_path)
    return open_store("dir:.opprof", root=tmp_path)


def test_run_is_a_file_named_by_its_commit(store: Archive, tmp_path: Path) -> None:
    saved = store.save("main", run_of(1), collected=NOBODY)
    assert saved.place == f".opprof/main/{key(1)}.json"
    assert (tmp_path / saved.place).is_file()


def test_large_runs_are_packed(store: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save("main", run_of(1), collected=NOBODY)
    monkeypatch.setattr(directory, "_PACKED_FROM", 0)
    saved = store.save("main", run_of(1), collected=NOBODY)
    assert saved.place == f".opprof/main/{key(1)}.json.gz"
    assert [path.name for path in Path(".opprof/main").iterdir()] == [f"{key(1)}.json.gz"]
    (entry,) = store.entries("main")
    assert entry.created == run_of(1).created
    assert store.load(entry).tests == (A,)


def test_entry_of_a_damaged_file_has_its_time(store: Archive) -> None:
    store.save("main", run_of(1), collected=NOBODY)
    damaged = Path(".opprof/main/damaged.json.gz")
    damaged.write_bytes(b"\x1f\x8bxx")
    os.utime(damaged, (0, 0))
    assert [entry.key for entry in store.entries("main")] == [key(1), "damaged"]


@pytest.mark.parametrize("name", ["pipe.json", "pipe.json.gz"])
def test_pipe_in_the_store_blocks_nobody(store: Archive, name: str) -> None:
    store.save("main", run_of(1), collected=NOBODY)
    os.mkfifo(f".opprof/main/{name}")
    os.utime(f".opprof/main/{name}", (0, 0))
    newest, pipe = store.entries("main")
    assert (newest.key, pipe.key) == (key(1), "pipe")
    with pytest.raises(StoreError, match="this is not a regular file"):
        store.load(pipe)
    store.save("main", run_of(2), collected=NOBODY)
    assert len(store.entries("main")) == 3


@pytest.mark.parametrize("name", ["ab", "crashes", "fleet", "history", "traces"])
def test_our_other_folders_are_not_baselines(store: Archive, tmp_path: Path, name: str) -> None:
    store.save("main", run_of(1), collected=NOBODY)
    other = tmp_path / ".opprof" / name
    other.mkdir()
    (other / "test_x.json.gz").write_bytes(b"")
    assert (store.names(), store.entries(name)) == (("main",), ())
    with pytest.raises(UsageError, match="is none of ab, crashes, fleet, history, traces"):
        store.save(name, run_of(1), collected=NOBODY)


def test_store_ignores_itself_in_git(store: Archive, tmp_path: Path) -> None:
    store.save("main", run_of(1), collected=NOBODY)
    ignore = tmp_path / ".opprof" / ".gitignore"
    assert "*/\n" in ignore.read_text()
    ignore.write_text("mine")
    store.save("main", run_of(2), collected=NOBODY)
    assert ignore.read_text() == "mine"


def test_packed_leftover_of_a_killed_save_is_ignored(store: Archive) -> None:
    store.save("main", run_of(1), collected=NOBODY)
    folder = Path(".opprof/main")
    (folder / f"{key(1)}.json.gz").write_bytes((folder / f"{key(1)}.json").read_bytes())
    (entry,) = store.entries("main")
    assert store.load(entry).tests == (A,)
    store.remove("main", is_meant=lambda entry: True)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        ("ftps3://bucket/x", "unknown kind of store .* use dir:PATH, counts:PATH, git:"),
        ("dir:", "the path is missing: write it like dir:.opprof"),
        ("counts:", "the path is missing: write it like counts:.opprof"),
        ("", "the path is missing"),
    ],
)
def test_non_store_is_refused(uri: str, sentence: str, tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(UsageError, match=sentence):
        open_store(uri, root=tmp_path)


def test_path_alone_is_a_folder(tmp_path: Path) -> None:
    assert open_store("some/where", root=tmp_path).uri == "dir:some/where"
    for uri in (f"dir:{tmp_path}/x", f"file://{tmp_path}/x"):
        store = open_store(uri, root=Path("/else"))
        assert store.uri == f"dir:{tmp_path}/x"
        assert isinstance(store.store, directory.DirectoryStore)
        assert store.store.folder == tmp_path / "x"


def test_file_in_the_way_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / ".opprof").write_text("")
    store = open_store("dir:.opprof", root=tmp_path)
    with pytest.raises(StoreError, match="a part of its path is a file, not a folder"):
        store.save("main", run_of(1), collected=NOBODY)
