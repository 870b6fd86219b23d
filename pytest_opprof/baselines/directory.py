"""Baselines in a folder: ``<name>/<key>.json``.

Readers need no lock, because files are replaced atomically. Two writers take turns by a lock file.
"""

from __future__ import annotations

import contextlib
import gzip
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, unquote

from pytest_opprof.baselines.keys import HEAD_BYTES, LONG_AGO, created_in, entry_of
from pytest_opprof.baselines.store import Change, Changed, Entry, Put
from pytest_opprof.errors import DocumentError
from pytest_opprof.locks import hold, opened
from pytest_opprof.results.files import read_bytes, read_head, shown, store_errors, write_bytes

_SUFFIXES = (".json", ".json.gz")
# A larger file is compressed; a smaller one stays plain for readers.
_PACKED_FROM = 1_000_000
_LOCK = ".lock"
# Baselines and traces can be made again; other files in the folder may be committed.
_GITIGNORE = b"# Written by pytest-opprof: baselines and traces stay here.\n*/\n/.lock\n/.gitignore\n"


class DirectoryStore:
    """Runs as files in a folder of this machine."""

    hint = ""

    def __init__(self, folder: Path, *, uri: str) -> None:
        self.folder = folder
        self.uri = uri

    def names(self) -> tuple[str, ...]:
        """The folders with a run."""
        found = (unquote(path.name) for path in listed(self.folder) if path.is_dir())
        return tuple(name for name in found if any(self._files(name)))

    def entries(self, name: str) -> tuple[Entry, ...]:
        """The runs of a name; a plain file and a compressed one, left by a killed save, count once."""
        found: dict[str, Entry] = {}
        for path in self._files(name):
            key = path.name.removesuffix(".gz").removesuffix(".json")
            if key not in found:
                found[key] = entry_of(
                    name, key, created=created_of(path), place=shown(path), parts=(path.name,)
                )
        return tuple(found.values())

    def read(self, entry: Entry) -> tuple[bytes, ...]:
        """The file of an entry."""
        return tuple(read_bytes(self._folder(entry.name) / part) for part in entry.parts)

    def change(self, name: str, plan: Callable[[tuple[Entry, ...]], Change]) -> Changed:
        """Apply ``plan`` while no other process writes."""
        folder = self._folder(name)
        with writing(self.folder / _LOCK, ignore=_GITIGNORE):
            change = plan(self.entries(name))
            places = tuple(self._write(folder, put) for put in change.puts)
            for entry in change.drops:
                for suffix in _SUFFIXES:
                    self._remove(folder / f"{entry.key}{suffix}")
            with contextlib.suppress(OSError):
                folder.rmdir()  # only if it is empty
        return Changed(places=places)

    def _write(self, folder: Path, put: Put) -> str:
        path, other = (folder / f"{put.key}{suffix}" for suffix in _SUFFIXES)
        data = put.data
        if len(data) > _PACKED_FROM:
            path, other, data = other, path, gzip.compress(data, mtime=0)
        write_bytes(path, data)
        self._remove(other)
        return shown(path)

    @staticmethod
    def _remove(path: Path) -> None:
        with store_errors(path, "cannot be removed"):
            path.unlink(missing_ok=True)

    def _folder(self, name: str) -> Path:
        return self.folder / quote(name, safe=" ")

    def _files(self, name: str) -> Iterator[Path]:
        for path in listed(self._folder(name)):
            if path.name.endswith(_SUFFIXES) and not path.name.startswith("."):
                yield path


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a folder, or a file made if missing; the system unlocks it if this process dies."""
    with store_errors(path.parent, "cannot be written"):
        descriptor = opened(path)
    try:
        with store_errors(path, "cannot be locked"):
            hold(descriptor)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def writing(lock: Path, *, ignore: bytes) -> Iterator[None]:
    """Be the only writer of a folder; it is made if missing, with ``ignore`` as its ``.gitignore``."""
    with store_errors(lock.parent, "cannot be written"):
        lock.parent.mkdir(parents=True, exist_ok=True)
    with locked(lock):
        if not (path := lock.with_name(".gitignore")).exists():
            write_bytes(path, ignore)
        yield


def listed(folder: Path) -> list[Path]:
    """A folder's content, in order; nothing without a folder. Raises `StoreError`."""
    with store_errors(folder, "cannot be read"), contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return sorted(folder.iterdir())
    return []


def created_of(path: Path) -> datetime:
    """When a run was measured, by the document's beginning; if that is damaged, by the file's time."""
    with contextlib.suppress(OSError, DocumentError):
        told = created_in(read_head(path, size=HEAD_BYTES))
        if told is not None:
            return told
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
    except OSError:
        return LONG_AGO
