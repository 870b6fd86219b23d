"""Baselines in a folder: ``<name>/<commit>.json``, the last 200 of each name.

Readers need no lock, since files are replaced whole. Two saves at once take turns at a lock file: the second
sees what the first wrote, and joins it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from pytest_opprof.baselines.store import Entry, Saved
from pytest_opprof.errors import DocumentError, UsageError
from pytest_opprof.results.files import read_head, read_run, store_error, write_bytes, write_run
from pytest_opprof.results.merge import Collected, merged
from pytest_opprof.results.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator

KEPT_RUNS = 200
_SCHEME = "dir:"
_URI_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_SUFFIXES = (".json", ".json.gz")
# Past so many tests and rows a document is packed; below, a plain file is worth more to who looks into it.
_PACKED_FROM = 5_000
_MAX_NAME = 100
_LOCK = ".lock"
_TRACES = "traces"
# Baselines and traces are made anew where they are needed; what else lies in the folder may be committed.
_GITIGNORE = b"# Written by pytest-opprof: baselines and traces stay here.\n*/\n/.lock\n/.gitignore\n"
_COMMIT_KEY = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})(-dirty)?")
_CREATED = re.compile(rb'"created":\s*"([0-9T:.+-]{19,40})"')
_HEAD_BYTES = 4_096


def open_store(uri: str, *, root: Path) -> DirectoryStore:
    """The store that a URI names.

    Args:
        uri: ``dir:PATH``, or a path alone.
        root: the folder that a relative path starts from.

    Raises:
        UsageError: a scheme that this release does not know.
    """
    scheme, colon, rest = uri.partition(":")
    if colon and _URI_SCHEME.fullmatch(scheme) and scheme != "dir":
        raise UsageError(f"--opprof-store={uri}: no store of the kind {scheme!r}; this release has dir:PATH")
    path = rest if colon and scheme == "dir" else uri
    if not path:
        raise UsageError(f"--opprof-store={uri}: the path is missing: write it like dir:.opprof")
    return DirectoryStore(root / path, uri=_SCHEME + path)


class DirectoryStore:
    """Baselines in a folder of this machine."""

    def __init__(self, folder: Path, *, uri: str) -> None:
        self.folder = folder
        self._uri = uri

    @property
    def uri(self) -> str:
        """The store as users write it: ``dir:.opprof``."""
        return self._uri

    def names(self) -> tuple[str, ...]:
        """The names that have at least one run, in alphabetical order."""
        found = (unquote(path.name) for path in self._listed(self.folder) if path.is_dir())
        return tuple(sorted(name for name in found if _is_name(name) and any(self._files(name))))

    def entries(self, name: str) -> tuple[Entry, ...]:
        """The runs of a name, newest first."""
        entries = [_entry(name, path) for path in self._files(name)]
        return tuple(sorted(entries, key=lambda entry: (entry.created, entry.key), reverse=True))

    def load(self, entry: Entry) -> Run:
        """Read a run.

        Raises:
            DocumentError: the file holds no run that this release can use.
            StoreError: the file cannot be read.
        """
        # The place says the name: a folder may have been copied or renamed.
        return replace(read_run(entry.path), name=entry.name)

    def save(self, name: str, run: Run, *, collected: Collected) -> Saved:
        """Keep a run under a name, in place of an earlier run of the same commit.

        Tests of the earlier run that did not run this time, and still exist, are kept.

        Raises:
            UsageError: the name cannot be one.
            StoreError: the store cannot be written; what it held is as it was.
            DocumentError: the file that would be replaced is damaged.
        """
        if not _is_name(name):
            raise UsageError(
                f"--opprof-save={name!a}: a name has 1 to {_MAX_NAME} printable characters, does not "
                f"start with a dot, and is not {_TRACES!r}"
            )
        run = replace(run, name=name)
        left_out = sum(not test.is_usable for test in run.tests)
        notes = [f"{left_out} of {len(run.tests)} tests not saved: they did not pass or were not measured"]
        notes = notes if left_out else []
        if left_out == len(run.tests):
            return Saved(path=None, run=replace(run, tests=()), notes=(*notes, "nothing was saved"))
        with self._locked():
            previous, problem = self._previous(name, key=_key(run))
            joined = merged(previous, run, collected=collected)
            path = self._write(joined.run)
            self._prune(name, keep=path)
        if joined.run.commit is None:
            notes.append("there is no commit to keep it under, so it is kept under its time")
        elif joined.run.commit.dirty:
            notes.append("the work tree has uncommitted changes, so it is kept as '-dirty'")
        return Saved(path=path, run=joined.run, notes=(*notes, *problem, *joined.notes))

    def _previous(self, name: str, *, key: str) -> tuple[Run | None, tuple[str, ...]]:
        """The run to carry tests over from, of this commit or the newest, and what is wrong with it."""
        entries = self.entries(name)
        for entry in entries:
            if entry.key == key:
                # It would be replaced, so a damaged one is for the user to look at first.
                return self.load(entry), ()
        for entry in entries[:1]:
            try:
                return self.load(entry), ()
            except DocumentError as error:
                return None, (f"no test was carried over: {error}",)
        return None, ()

    def _write(self, run: Run) -> Path:
        assert run.name is not None, "save() gave it one"
        folder = self.folder / quote(run.name, safe=" ")
        rows = sum(len(test.ops) + len(test.tree) for test in run.tests)
        path, other = (folder / f"{_key(run)}{suffix}" for suffix in _SUFFIXES)
        if rows > _PACKED_FROM:
            path, other = other, path
        write_run(path, run)
        with contextlib.suppress(FileNotFoundError):
            other.unlink()
        return path

    def _prune(self, name: str, *, keep: Path) -> None:
        for entry in self.entries(name)[KEPT_RUNS:]:
            if entry.path != keep:
                with contextlib.suppress(OSError):
                    entry.path.unlink()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self.folder / _LOCK
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise store_error(self.folder, "cannot be written", error) from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            except OSError as error:
                raise store_error(lock, "cannot be locked", error) from error
            ignore = self.folder / ".gitignore"
            if not ignore.exists():
                write_bytes(ignore, _GITIGNORE)
            yield
        finally:
            os.close(descriptor)

    def _files(self, name: str) -> Iterator[Path]:
        for path in self._listed(self.folder / quote(name, safe=" ")):
            if path.name.endswith(_SUFFIXES) and not path.name.startswith("."):
                yield path

    @staticmethod
    def _listed(folder: Path) -> list[Path]:
        try:
            return sorted(folder.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise store_error(folder, "cannot be read", error) from error


def _is_name(name: str) -> bool:
    return (
        name.isprintable()
        and name.strip() == name
        and 1 <= len(name) <= _MAX_NAME
        and not name.startswith(".")
        and name != _TRACES
    )


def _key(run: Run) -> str:
    if run.commit is None:
        return f"{run.created.astimezone(UTC):%Y%m%dT%H%M%S.%f}Z-{run.run_id[:8]}"
    return run.commit.id + ("-dirty" if run.commit.dirty else "")


def _entry(name: str, path: Path) -> Entry:
    key = path.name.removesuffix(".gz").removesuffix(".json")
    commit = _COMMIT_KEY.fullmatch(key)
    return Entry(
        name=name,
        key=key,
        commit=commit[1] if commit else None,
        is_dirty=bool(commit and commit[2]),
        created=_created(path),
        path=path,
    )


def _created(path: Path) -> datetime:
    """When a run was measured: its document says so near its beginning. A damaged one has its file's time."""
    with contextlib.suppress(ValueError, OSError, DocumentError):
        told = _CREATED.search(read_head(path, size=_HEAD_BYTES))
        if told:
            return datetime.fromisoformat(told[1].decode("ascii")).astimezone(UTC)
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
    except OSError:
        return datetime.fromtimestamp(0, tz=UTC)
