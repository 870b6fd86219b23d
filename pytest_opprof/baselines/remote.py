"""Baselines in an object store, or whatever fsspec can reach: ``<name>/<key>.<time>.<digest>.json.gz``.

Object stores have no locks, and not all have conditional writes. So no object is ever written twice: a save
writes a new one, named by its content, and then removes those that it has read and joined. Two simultaneous
saves leave two objects of one commit; readers and the next save join them. A killed save leaves the earlier
objects, and maybe the new one beside them. A listing must show what was written before, which S3, Google
Cloud Storage and Azure promise.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

from pytest_opprof.addresses import said_of, shown
from pytest_opprof.baselines.keys import LONG_AGO, entry_of, is_key
from pytest_opprof.baselines.store import Change, Changed, Entry, Put, kind_and_place
from pytest_opprof.errors import StoreError, UsageError
from pytest_opprof.extras import needed
from pytest_opprof.results.document import refusal
from pytest_opprof.results.files import MAX_DOCUMENT_BYTES
from pytest_opprof.wording import did_you_mean

_OBJECT = re.compile(r"(?P<key>.+)\.(?P<time>\d{8}T\d{12})Z\.(?P<digest>[0-9a-f]{16})\.json\.gz")
_TIME = "%Y%m%dT%H%M%S%f"
_DIGITS = 16
# Protocols that write an object atomically. For others, a file is written beside, then renamed.
_WHOLE = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory"})
_UNCHANGED = "The store is unchanged"
_LOCAL = ("dir", "counts", "git")
_KNOWN = "dir:PATH, counts:PATH, git: or an address of fsspec, such as s3://bucket/folder"
_S3 = ("s3:", "s3a:")
# How often a reader looks again for a run that others have just moved.
_MOST_TRIES = 10


def open_remote(uri: str) -> RemoteStore:
    """The store at an address; raises `UsageError` if the scheme is unknown or a library missing.

    If it cannot be opened, it raises `StoreError`: some connect and log in at once.
    """
    place, (kind, _) = shown(uri), kind_and_place(uri)
    if "://" not in uri:  # fsspec would take it for a local file
        why = did_you_mean(kind, _LOCAL, otherwise="it has no ://, and is none of")
        raise UsageError(f"--opprof-store={place}: unknown kind of store ({why}); use {_KNOWN}")
    fsspec = needed("fsspec", extra="remote", by=f"--opprof-store={place}: a store at an address")
    try:
        _check_scheme(fsspec, uri)
        filesystem, root = fsspec.core.url_to_fs(uri)
    except UsageError:
        raise
    except ImportError as error:  # fsspec says which library serves the scheme
        why = _said(error, uri=uri)
        if uri.startswith(_S3):
            why = "a store in S3 needs s3fs: pip install 'pytest-opprof[remote]'"
        raise UsageError(f"--opprof-store={place}: {why}") from error
    except Exception as error:  # each library behind fsspec has a tree of its own
        said = _said(error, uri=uri)
        raise StoreError(
            f"{place} cannot be opened: {said}. Check the address and its credentials"
        ) from error
    return RemoteStore(filesystem, root.rstrip("/"), uri=uri)


def _check_scheme(fsspec: Any, uri: str) -> None:
    """Refuse unknown schemes first, because a ValueError while opening may have another cause."""
    try:
        fsspec.get_filesystem_class(fsspec.utils.get_protocol(uri))
    except ValueError as error:
        raise UsageError(
            f"--opprof-store={shown(uri)}: unknown kind of store ({_said(error, uri=uri)}); use {_KNOWN}"
        ) from error


def _said(error: Exception, *, uri: str) -> str:
    """A library's error on one line; its exception's name if it is empty."""
    return said_of(uri, " ".join(str(error).split()).rstrip(".") or type(error).__name__)


class RemoteStore:
    """Runs at an address."""

    hint = ""

    def __init__(self, filesystem: Any, root: str, *, uri: str) -> None:
        self._filesystem = filesystem
        self._root = root
        self._address = uri
        self.uri = shown(uri)
        self._place = self.uri.rstrip("/")
        protocols = filesystem.protocol
        names = {protocols} if isinstance(protocols, str) else set(protocols)
        self._is_whole = not names.isdisjoint(_WHOLE)

    def names(self) -> tuple[str, ...]:
        """The folders that have an object."""
        names = (unquote(path.rpartition("/")[2]) for path in self._listed(self._root))
        return tuple(name for name in names if self.entries(name))

    def entries(self, name: str) -> tuple[Entry, ...]:
        """The objects of a name, grouped by key."""
        objects: dict[str, list[tuple[datetime, str]]] = {}
        for path in self._listed(self._folder(name)):
            found = _OBJECT.fullmatch(path.rpartition("/")[2])
            if found is not None and is_key(found["key"]):
                objects.setdefault(found["key"], []).append((_time(found["time"]), found[0]))
        return tuple(
            entry_of(
                name,
                key,
                created=max(parts)[0],
                place=f"{self._place}/{quote(name, safe='')}/{max(parts)[1]}",
                parts=tuple(part for _, part in sorted(parts)),
            )
            for key, parts in objects.items()
        )

    def read(self, entry: Entry) -> tuple[bytes, ...]:
        """The objects of an entry; looked up again if another process has just joined them."""
        for _ in range(_MOST_TRIES):
            with contextlib.suppress(FileNotFoundError):
                return tuple(self._object(entry, part) for part in entry.parts)
            entry = next((one for one in self.entries(entry.name) if one.key == entry.key), entry)
        raise StoreError(f"{entry.place} cannot be read: it is no longer there")

    def change(self, name: str, plan: Callable[[tuple[Entry, ...]], Change]) -> Changed:
        """Write new objects first, and only then remove those they replace."""
        entries = {entry.key: entry for entry in self.entries(name)}
        change = plan(tuple(entries.values()))
        written: list[str] = []
        for put in change.puts:
            written.append(self._written(name, put, after="Some runs are written" if written else _UNCHANGED))
        replaced = [entries[put.key] for put in change.puts if put.key in entries]
        old = [part for entry in (*replaced, *change.drops) for part in entry.parts if part not in written]
        notes = self._remove(name, old, is_saved=bool(written))
        return Changed(
            places=tuple(f"{self._place}/{quote(name, safe='')}/{part}" for part in written), notes=notes
        )

    def _written(self, name: str, put: Put, *, after: str) -> str:
        data = gzip.compress(put.data, mtime=0)
        created = put.created.astimezone(UTC)
        part = f"{put.key}.{created:{_TIME}}Z.{_digest(data)}.json.gz"
        path = f"{self._folder(name)}/{part}"
        with self._asked("cannot be written", is_needed=True, after=after):
            if self._is_whole:
                self._filesystem.pipe_file(path, data)
            else:
                beside = f"{self._folder(name)}/.opprof-{secrets.token_hex(8)}.tmp"
                self._filesystem.makedirs(self._folder(name), exist_ok=True)
                self._filesystem.pipe_file(beside, data)
                self._filesystem.mv(beside, path)
        return part

    def _object(self, entry: Entry, part: str) -> bytes:
        path = f"{self._folder(entry.name)}/{part}"
        with self._asked("cannot be read"):
            data: bytes = self._filesystem.cat_file(path, start=0, end=MAX_DOCUMENT_BYTES)
        found = _OBJECT.fullmatch(part)
        if found is None or _digest(data) != found["digest"]:
            raise refusal(entry.place, "its bytes differ from the saved ones: it is damaged or cut off")
        return data

    def _remove(self, name: str, parts: Sequence[str], *, is_saved: bool) -> tuple[str, ...]:
        """Remove objects; after a save, those that cannot be removed only get a note."""
        after = "The next save of this commit tries again" if is_saved else _UNCHANGED
        try:
            for part in parts:
                # Somebody else may have joined, and removed, the same object.
                with (
                    contextlib.suppress(FileNotFoundError),
                    self._asked("has objects that cannot be removed", after=after),
                ):
                    self._filesystem.rm_file(f"{self._folder(name)}/{part}")
                after = after if is_saved else "Some of them are removed"
        except StoreError as error:
            if not is_saved:
                raise
            return (f"the run is saved, but {error}",)
        return ()

    def _listed(self, folder: str) -> list[str]:
        # fsspec's cache of a listing would hide newer objects.
        with self._asked("cannot be read"):
            self._filesystem.invalidate_cache()
            with contextlib.suppress(FileNotFoundError):
                return [str(path).rstrip("/") for path in self._filesystem.ls(folder, detail=False)]
        return []

    @contextlib.contextmanager
    def _asked(self, what: str, *, is_needed: bool = False, after: str = _UNCHANGED) -> Iterator[None]:
        """Turn each library's exceptions into one sentence; a missing object is left to the caller."""
        try:
            yield
        except Exception as error:  # each library behind fsspec has a tree of its own
            if isinstance(error, FileNotFoundError) and not is_needed:
                raise
            said = _said(error, uri=self._address)
            raise StoreError(f"{self.uri} {what}: {said}. {after}") from error

    def _folder(self, name: str) -> str:
        return f"{self._root}/{quote(name, safe='')}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGITS]


def _time(text: str) -> datetime:
    try:
        return datetime.strptime(text, _TIME).replace(tzinfo=UTC)
    except ValueError:
        return LONG_AGO
