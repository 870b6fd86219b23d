"""Stores of each kind, and the environment in which another process can open one."""

import os
import secrets
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.documents.strategies import simple_run, simple_test
from support.forges.object_store import BUCKET

from pytest_opprof.baselines.archive import Archive, open_store
from pytest_opprof.baselines.remote import RemoteStore
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Commit, Run, TestResult

NOBODY = Collected()
A, B = (simple_test({"aten::mul": 1}, node_id=f"t.py::test_{name}") for name in "ab")
# kinds whose stores other processes can open
SHARED = ("dir", "git", "s3")
KINDS = (*SHARED, "memory", "renaming")
# the part of a key that stands for the environment of `run_of`
FAMILY = "py3.11-torch2.13"


def run_of(number: int, *tests: TestResult, dirty: bool = False, hours: int = 0) -> Run:
    """A run of the commit with this number, one day later for each."""
    return simple_run(
        *(tests or (A,)),
        run_id=f"run{number}",
        created=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number, hours=hours),
        commit=Commit(id=f"{number:040x}", dirty=dirty),
    )


def key(number: int, *, dirty: bool = False) -> str:
    """The key of the run of the commit with this number."""
    return f"{number:040x}{'-dirty' if dirty else ''}_{FAMILY}"


def git(folder: Path, *arguments: str) -> str:
    """Run git with an identity."""
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a test has its store.

    Attributes:
        uri: The address that users write.
        folder: The base of relative paths.
    """

    uri: str
    folder: Path

    def archive(self) -> Archive:
        """The store, opened anew."""
        if self.uri.startswith("renaming:"):
            from fsspec.implementations.local import LocalFileSystem

            path = str(self.folder / "files")
            return Archive(RemoteStore(LocalFileSystem(), path, uri=f"local://{path}"))
        return open_store(self.uri, root=self.folder)

    def damage(self, name: str, key: str) -> None:
        """Cut a stored file in two, bypassing the store."""
        archive = self.archive()
        (entry,) = (one for one in archive.entries(name) if one.key == key)
        (data,) = archive.store.read(entry)
        half = data[: len(data) // 2]
        if isinstance(archive.store, RemoteStore):
            path = f"{archive.store._root}/{name}/{entry.parts[0]}"
            archive.store._filesystem.pipe_file(path, half)
        elif self.uri == "git:":
            (self.folder / "half").write_bytes(half)
            blob = git(self.folder, "hash-object", "-w", "half")
            ref = f"refs/opprof/{name}"
            listed = git(self.folder, "ls-tree", ref).replace(entry.parts[0], blob)
            (self.folder / "listed").write_text(listed + "\n")
            with (self.folder / "listed").open() as lines:
                made = subprocess.run(
                    ["git", "mktree"],
                    cwd=self.folder,
                    stdin=lines,
                    check=True,
                    capture_output=True,
                    text=True,
                )
            git(
                self.folder,
                "update-ref",
                ref,
                git(self.folder, "commit-tree", "-m", "x", made.stdout.strip()),
            )
        else:
            (self.folder / ".opprof" / name / entry.parts[0]).write_bytes(half)


def place_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> Place:
    """A place for a store of this kind; skips if its libraries are missing."""
    makers: dict[str, Callable[[], str]] = {
        "dir": lambda: "dir:.opprof",
        "counts": lambda: "counts:ci",
        "git": lambda: git(folder, "init", "-q", "-b", "main", "--template=") or "git:",
        "s3": lambda: f"s3://{BUCKET}/{secrets.token_hex(8)}",
        "memory": lambda: f"memory://{secrets.token_hex(8)}",
        "renaming": lambda: "renaming:",
    }
    if kind in {"s3", "memory", "renaming"}:
        pytest.importorskip("fsspec")
    if kind == "s3":
        request.getfixturevalue("object_store_variables")
    return Place(uri=makers[kind](), folder=folder)


def environment_of(place: Place) -> dict[str, str]:
    """A process's variables to open the place's store, and to import this folder's modules."""
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ["PYTHONPATH"]])
    return {**os.environ, "PYTHONPATH": path, "STORE": place.uri, "FOLDER": str(place.folder)}
