"""Traces in Kineto's format, from torch.profiler or other tools."""

from __future__ import annotations

import functools
import os
import warnings
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from pytest_opprof.analysis.collectives import MOST_RANKS
from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import check, last_error
from pytest_opprof.errors import DocumentError, StoreError
from pytest_opprof.events.columns import Compat
from pytest_opprof.events.event_list import EventList
from pytest_opprof.events.key_averages import Averaged, Grouping, KeyAverages
from pytest_opprof.events.kineto_results import KinetoResults
from pytest_opprof.regular_files import open_regular
from pytest_opprof.traces.imported_recording import ImportedRecording, parse_members

# The most that a file may hold, so that a hostile one does not exhaust the memory.
MOST_EVENTS: Final = 50_000_000
MOST_BYTES: Final = 16 << 30
_PIECE: Final = 1 << 20
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS


def pieces_of(path: Path) -> Iterator[bytes]:
    """Pieces of at most 1 MiB. The file's first bytes, not its name, tell whether it is gzip."""
    try:
        with open_regular(path) as file:
            yield from pieces_of_file(file, where=path)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error


def pieces_of_file(file: BinaryIO, *, where: Path | str) -> Iterator[bytes]:
    """As `pieces_of`, for an open file, but with an `OSError` if it cannot be read."""
    head = file.read(len(_GZIP_MAGIC))
    if head == _GZIP_MAGIC:
        yield from _inflated(file, head, where=where)
        return
    yield head
    while piece := file.read(_PIECE):
        yield piece


def _inflated(file: BinaryIO, head: bytes, *, where: Path | str) -> Iterator[bytes]:
    packed = head + file.read(_PIECE)
    while packed:  # concatenated gzip files are one file
        inflater = zlib.decompressobj(_GZIP_WINDOW)
        while not inflater.eof:
            try:
                # Bound the output, because a small file may unpack to any size.
                piece = inflater.decompress(packed, _PIECE)
            except zlib.error as error:
                raise DocumentError(
                    f"{where}: the gzip data is damaged: {error}. Get the file again"
                ) from error
            yield piece
            packed = inflater.unconsumed_tail
            # After a whole piece, these bytes may still have more output.
            if not packed and len(piece) < _PIECE and not inflater.eof:
                packed = file.read(_PIECE)
                if not packed:
                    raise DocumentError(f"{where}: the gzip data is cut off. Get the file again")
        packed = (inflater.unused_data or file.read(_PIECE)).lstrip(b"\0")


class TraceFile(Averaged):
    """A trace read from a file."""

    def __init__(self, path: Path, recording: ImportedRecording) -> None:
        self.path = path
        self.recording = recording
        self._events = EventList([recording])

    def __repr__(self) -> str:
        return f"<TraceFile {str(self.path)!r}: {len(self.recording)} events>"

    def events(self) -> EventList:
        """The events of the host and of devices, one by one."""
        return self._events

    @functools.cached_property
    def kineto_results(self) -> KinetoResults:
        """The events as torch's ``profile.kineto_results`` offers them, for `BasicEvaluation`."""
        return KinetoResults(self.recording)

    def _averages(self, grouping: Grouping, *, compat: Compat | None) -> KeyAverages:
        if grouping.overloads:
            warnings.warn(
                "group_by_overload_name: a trace names its ops with their overloads: rows are apart anyway",
                stacklevel=3,
            )
        return self._events.averages(grouping, compat=compat)

    @functools.cached_property
    def metadata(self) -> dict[str, Any]:
        """The file's members besides its events, such as ``deviceProperties`` and ``distributedInfo``.

        Raises:
            DocumentError: It is nested too deeply for Python.
        """
        return parse_members(self.recording.metadata_text, where=str(self.path))

    @property
    def rank(self) -> int | None:
        """The rank of the distributed program that recorded it; None if the file does not say."""
        return self._distributed("rank", least=0)

    @property
    def world_size(self) -> int | None:
        """The number of ranks of that program; None if the file does not say."""
        return self._distributed("world_size", least=1)

    def _distributed(self, key: str, *, least: int) -> int | None:
        info = self.metadata.get("distributedInfo")
        value = info.get(key) if isinstance(info, dict) else None
        if not isinstance(value, int) or isinstance(value, bool):
            return None
        return value if least <= value <= MOST_RANKS else None

    @property
    def other_events(self) -> int:
        """The number of events that are not work of the host or a device: flows, counters, thread names."""
        return self.recording.other_events

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the trace again, atomically and with everything in its file; a ``.gz`` path compresses it.

        Raises:
            OSError: The file cannot be written.
        """
        self.recording.write_chrome_trace(path)


def load_trace(
    path: str | os.PathLike[str], *, max_events: int = MOST_EVENTS, max_bytes: int = MOST_BYTES
) -> TraceFile:
    """Read a trace in Kineto's format: a JSON object with ``traceEvents`` or a list of events, or gzip of it.

    It is read in pieces, so that only the columns and the packed arguments of events take memory. Times are
    whole nanoseconds, parsed from the decimal text.

    Args:
        max_events: A file with more events is refused.
        max_bytes: A file with more JSON, when decompressed, is refused.

    Raises:
        StoreError: The file cannot be read.
        DocumentError: It is not such a trace, is damaged, or is larger than allowed.
        CollectorError: There is no memory for it.
    """
    where = Path(path)
    return read_trace(pieces_of(where), where=where, max_events=max_events, max_bytes=max_bytes)


def read_trace(
    pieces: Iterable[bytes], *, where: Path, max_events: int = MOST_EVENTS, max_bytes: int = MOST_BYTES
) -> TraceFile:
    """As `load_trace`, from the decompressed bytes of a file in pieces of any length; errors name `where`."""
    holder = ffi.new("op_trace_reader **")
    check(lib.op_trace_open(holder, max_events, max_bytes))
    reader = ffi.gc(holder[0], lib.op_trace_close)
    for piece in pieces:
        _check(lib.op_trace_feed(reader, ffi.from_buffer(piece), len(piece)), where=where)
    result = ffi.new("op_result **")
    _check(lib.op_trace_finish(reader, result), where=where)
    return TraceFile(where, ImportedRecording(result[0], sources=()))


def _check(code: int, *, where: Path) -> None:
    if code == lib.OP_EFORMAT:
        raise DocumentError(f"{where} is not a whole Chrome trace: {last_error()}")
    if code == lib.OP_ELIMIT:
        raise DocumentError(f"{where} is larger than allowed: {last_error()}")
    check(code)
