"""Stored baselines: in folders, as reviewed counts, in git refs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from fuzz.target import Target, put, refusals_end_here

from pytest_opprof.baselines.archive import Archive, open_store
from pytest_opprof.baselines.counts import reviewable
from pytest_opprof.baselines.git import run_git
from pytest_opprof.baselines.git_ref import REFS, GitRefStore
from pytest_opprof.baselines.summary import summaries, summary_to_document
from pytest_opprof.errors import StoreError
from pytest_opprof.results.files import run_from_bytes

_KEY: Final = "1a2b3c4" + "0" * 33
_TEXTS: Final = ("main", "aten::clone", "counts", "created", "ops.count")


def _look(archive: Archive) -> None:
    """Run every use that ``opprof baseline`` and a gate make of a store."""
    for summary in summaries(archive):
        assert summary_to_document(summary)["name"] == summary.name
    for name in archive.names():
        for entry in archive.entries(name):
            with refusals_end_here():
                assert archive.load(entry).name == name


def _read_folder(data: bytes, folder: Path) -> None:
    shutil.rmtree(folder / "store", ignore_errors=True)
    (folder / "store" / "main").mkdir(parents=True)
    put(folder / "store" / "main", f"{_KEY}.json", data)
    archive = open_store("dir:store", root=folder)
    _look(archive)
    copy = open_store("dir:copy", root=folder)
    copy.take(archive, archive.names())
    _look(copy)
    shutil.rmtree(folder / "copy", ignore_errors=True)


def _read_counts(data: bytes, folder: Path) -> None:
    shutil.rmtree(folder / "copy", ignore_errors=True)
    (folder / "store").mkdir(exist_ok=True)
    put(folder / "store", "main.counts.json", data)
    archive = open_store("counts:store", root=folder)
    _look(archive)
    # storing counts twice gives the same file
    copy = open_store("counts:copy", root=folder)
    copy.take(archive, ["main"])
    kept = folder / "copy" / "main.counts.json"
    if kept.exists():
        before = kept.read_bytes()
        assert reviewable(run_from_bytes(before, where="copy"), name="main") == before


def _repository(folder: Path) -> Path:
    repository = folder / "repository"
    if not repository.exists():
        repository.mkdir()
        run_git(repository, "init", "--quiet")
    return repository


def _read_ref(data: bytes, folder: Path) -> None:
    """The first line holds the ref's and the file's name, separated by a tab; the file follows."""
    line, _, blob = data.partition(b"\n")
    ref, _, name = line.decode("utf-8", "surrogateescape").partition("\t")
    if "\0" in line.decode("latin-1"):
        return
    store = GitRefStore(_repository(folder))
    for old in store.tips():
        store.ask("update-ref", "-d", old)
    number = store.ask("hash-object", "-w", "--stdin", given=blob).decode().strip()
    listed = f"100644 blob {number}\t{name}\0".encode("utf-8", "surrogateescape")
    tree = store.ask("mktree", "-z", given=listed).decode().strip()
    commit = store.ask("commit-tree", tree).decode().strip()
    try:
        store.ask("update-ref", REFS + ref, commit)
    except (ValueError, UnicodeError) as error:
        raise StoreError(f"git cannot be told of {ref!a}") from error
    _look(Archive(store))


TARGETS: Final = (
    Target(name="baseline", read=_read_folder, words=_TEXTS),
    Target(name="counts", read=_read_counts, words=_TEXTS),
    Target(name="git-ref", read=_read_ref, words=_TEXTS),
)
