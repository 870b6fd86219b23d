"""The log, which is the history itself: segments of JSON lines that are only appended to.

A segment holds definitions and runs. A run follows its definitions in the same segment. So segments can be
copied between machines, and a lost segment loses only its own runs. A definition is named by the digest of
its text, so compaction replaces a damaged one by its copy in another segment::

    {"define":"9c56cc51b374c3ba","as":{"node_id":"tests/test_a.py::test_x","steps":3,...}}
    {"run":"5f0c...","created":"...","commit":{...},"environment":"4d1e...","tests":{"9c56cc51b374c3ba":[81125]}}

Writers take turns by a lock. A killed writer leaves half a line at a segment's end: nobody appends to that
segment again, and readers skip the half line.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_opprof.baselines.directory import writing
from pytest_opprof.errors import StoreError
from pytest_opprof.history.entries import RunEntry, definitions_of, read_entries, records_of
from pytest_opprof.history.record import Definition, RunRecord
from pytest_opprof.locks import hold
from pytest_opprof.regular_files import AT_ONCE, BINARY, open_regular
from pytest_opprof.results.files import store_errors, write_bytes
from pytest_opprof.results.members import to_members

SUFFIX = ".jsonl"
# Each segment repeats the definitions that its runs use: at this size they are a few percent of it.
SEGMENT_BYTES = 4 * 1024 * 1024
_LOCK = ".lock"
_READERS_WAIT_S = 5.0
_LONGEST_NAME = 255
# Names the current segment, and the folder by its lock file. A copy of the folder has another lock file, so
# it begins a segment of its own, and the segments of both can be put together.
_CURRENT = ".current"
_GITIGNORE = b"*\n"
_DEFINED = re.compile(rb'^\{"define":"([0-9a-f]{16})"', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """The result of a compaction."""

    runs: int  # how many runs were written
    # Segments that were left alone, because a line or a result in them cannot be read.
    kept: tuple[Path, ...] = ()


class HistoryLog:
    """The log of one store; the folder of its segments need not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def segments(self) -> tuple[Path, ...]:
        """The files of the log, by name."""
        with store_errors(self.folder, "cannot be read"):
            return tuple(sorted(self.folder.glob(f"*{SUFFIX}")))

    def records(self) -> Iterator[RunRecord]:
        """The runs of all segments, each once."""
        contents = _Contents(self.segments())
        seen = set()
        for record in contents.records(contents.segments):
            if record.head.run_id not in seen:
                seen.add(record.head.run_id)
                yield record

    def append(self, records: Iterable[RunRecord]) -> int:
        """Add the runs that have tests, and count them; after a StoreError the log is unchanged."""
        with writing(self.folder / _LOCK, ignore=_GITIGNORE):
            return self._write(records, to=self._current())

    def compact(self) -> Compacted:
        """Rewrite the runs of all whole segments, each once, into segments of full size.

        If every CI job begins a segment, there are soon many, each with its own definitions. A damaged one
        stays, because what cannot be read in it may be repaired from a copy.
        """
        with writing(self.folder / _LOCK, ignore=_GITIGNORE):
            contents = _Contents(self.segments())
            whole = [segment for segment in contents.segments if contents.is_whole(segment)]
            # If this is killed before the last unlink, some runs are there twice: readers count them once.
            written = self._write(contents.records(whole), to=self._new_segment()) if whole else 0
            for segment in whole:
                with contextlib.suppress(FileNotFoundError):
                    segment.unlink()
            kept = tuple(segment for segment in contents.segments if not contents.is_whole(segment))
        return Compacted(runs=written, kept=kept)

    def _write(self, records: Iterable[RunRecord], *, to: Path) -> int:
        added, writer = set(), _Writer(to)
        for record in records:
            if not record.tests:
                continue
            if writer.is_full:
                writer.flush()
                writer = _Writer(self._new_segment())
            writer.add(record)
            added.add(record.head.run_id)
        writer.flush()
        return len(added)

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Keep writers out while reading; without a lock file there is no writer."""
        try:
            descriptor = os.open(self.folder / _LOCK, os.O_RDONLY | AT_ONCE)
        except OSError:
            yield
            return
        try:
            # Some network file systems have no locks: then a run that is being written is read another time.
            with contextlib.suppress(OSError):
                hold(descriptor, shared=True, limit_s=_READERS_WAIT_S)
            yield
        finally:
            os.close(descriptor)

    def _current(self) -> Path:
        """The segment to append to: this folder's last one, unless it is full or ends in half a line."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            with open_regular(self.folder / _CURRENT) as file:
                name, _, place = file.read(_LONGEST_NAME).decode("ascii").strip().partition("\n")
            path = self.folder / name
            if (
                place == self._place()
                and path.parent == self.folder
                and name.endswith(SUFFIX)
                and 0 < path.stat().st_size < SEGMENT_BYTES
            ):
                with open_regular(path) as file:
                    file.seek(-1, os.SEEK_END)
                    if file.read() == b"\n":
                        return path
        return self._new_segment()

    def _new_segment(self) -> Path:
        name = secrets.token_hex(8) + SUFFIX
        # Without this note the next append only begins another segment.
        with contextlib.suppress(StoreError):
            write_bytes(self.folder / _CURRENT, f"{name}\n{self._place()}\n".encode("ascii"))
        return self.folder / name

    def _place(self) -> str:
        """Tells this folder from its copies, whose files were made at another time."""
        with store_errors(self.folder, "cannot be read"):
            lock = (self.folder / _LOCK).stat()
        return f"{lock.st_ino} {lock.st_ctime_ns}"


class _Contents:
    """What segments define and need, read before their runs."""

    def __init__(self, segments: Sequence[Path]) -> None:
        self.segments = segments
        self._known: dict[str, Definition] = {}
        self._named: dict[Path, set[str]] = {}
        self._damaged: set[Path] = set()
        self._needed: dict[Path, set[str]] = {}
        for segment in segments:
            chunk = read_entries(segment)
            if chunk.damaged:
                self._damaged.add(segment)
            self._known.update(definitions_of(chunk.entries))
            runs = [entry for entry in chunk.entries if isinstance(entry, RunEntry)]
            self._named[segment] = {run.head.run_id for run in runs if run.head.name is not None}
            self._needed[segment] = {digest for run in runs for digest in (run.environment, *run.tests)}

    def is_whole(self, segment: Path) -> bool:
        """Whether each line is read, and all results are defined somewhere.

        Half a line at the end is a run that was never added.
        """
        return segment not in self._damaged and self._needed[segment] <= self._known.keys()

    def records(self, segments: Sequence[Path]) -> Iterator[RunRecord]:
        """The runs of segments, once for each name that a run was saved under."""
        # A run that is in a segment without its name, because it was saved later.
        named = set[str]().union(*(self._named[each] for each in segments if self.is_whole(each)))
        seen = set()
        for segment in segments:
            for record in records_of(read_entries(segment).entries, self._known):
                head = record.head
                is_renamed = head.name is None and head.run_id in named
                if not is_renamed and (head.run_id, head.name) not in seen:
                    seen.add((head.run_id, head.name))
                    yield record


class _Writer:
    """Collects lines for one segment, and writes them at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        written = b""
        with (
            store_errors(path, "cannot be read"),
            contextlib.suppress(FileNotFoundError),
            open_regular(path) as file,
        ):
            written = file.read()
        self._size = len(written)
        self._defined = {digest.decode("ascii") for digest in _DEFINED.findall(written)}
        self._lines: list[str] = []

    @property
    def is_full(self) -> bool:
        return self._size >= SEGMENT_BYTES

    def add(self, record: RunRecord) -> None:
        for definition in (record.environment, *(definition for definition, _ in record.tests)):
            if definition.digest not in self._defined:
                self._defined.add(definition.digest)
                self._put(f'{{"define":"{definition.digest}","as":{definition.text}}}\n')
        head = to_members(record.head)
        document = {
            "run": head.pop("run_id"),
            **head,
            "environment": record.environment.digest,
            "tests": {definition.digest: list(values) for definition, values in record.tests},
        }
        self._put(json.dumps(document, separators=(",", ":")) + "\n")

    def flush(self) -> None:
        """Append the added lines: all or, as far as the system allows, none."""
        if not self._lines:
            return
        data = "".join(self._lines).encode("ascii")
        self._lines.clear()
        with store_errors(self._path, "cannot be written", after="; the history is unchanged"):
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | BINARY | AT_ONCE, 0o666)
            try:
                _append(descriptor, data)
            finally:
                os.close(descriptor)

    def _put(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line)


def _append(descriptor: int, data: bytes) -> None:
    before = os.fstat(descriptor).st_size
    try:
        written = 0
        while written < len(data):
            written += os.write(descriptor, data[written:])
        os.fsync(descriptor)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, before)
        raise
