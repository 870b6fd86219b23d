"""Databases of nvprof: NVTX ranges, and the kernels launched in them."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pytest_opprof.errors import DocumentError
from pytest_opprof.events.event_list import EventList
from pytest_opprof.events.function_event import FunctionEvent
from pytest_opprof.events.kineto_recording import KinetoRecording
from pytest_opprof.events.names import demangled
from pytest_opprof.traces.sqlite import Database, DatabaseEvent, DatabaseResult, device_rows, opened

_MARKERS: Final = "CUPTI_ACTIVITY_KIND_MARKER"
_RUNTIME: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
_KERNELS: Final = "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"
_LAUNCH: Final = 211
_THREAD_KIND: Final = 2  # CUPTI_ACTIVITY_OBJECT_THREAD
_THREAD: Final = struct.Struct("=II")  # the process and its thread


class EnforceUnique:
    """Rejects a key that was seen before, as torch's class of that name does."""

    def __init__(self) -> None:
        self.seen: set[tuple[object, ...]] = set()

    def see(self, *key: object) -> None:
        """Note a key.

        Raises:
            RuntimeError: It was seen before. Torch raises the same.
        """
        if key in self.seen:
            raise RuntimeError(f"duplicate key: {key}")
        self.seen.add(key)


def load_nvprof(path: str | os.PathLike[str]) -> EventList:
    """The ranges and the device work of a database that ``nvprof -o`` wrote.

    Torch's function of that name returns only the ranges, not nested, with nanoseconds given as microseconds.
    It assigns a kernel to every range around its launch.

    Raises:
        StoreError: The file cannot be opened.
        DocumentError: It is not such a database.
    """
    with opened(Path(path)) as database:
        if not database.has(_MARKERS) and not database.has(_KERNELS):
            raise DocumentError(f"{path} has neither markers nor kernels from nvprof; for nsys use load_nsys")
        events = list(_events(database))
    return EventList([KinetoRecording(DatabaseResult(events))])


def parse_nvprof_trace(path: str | os.PathLike[str]) -> list[FunctionEvent]:
    """The ranges of a database that ``nvprof -o`` wrote, in start order, with the kernels launched in each.

    Raises:
        StoreError: The file cannot be opened.
        DocumentError: It is not such a database.
    """
    return [event for event in load_nvprof(path) if event.is_user_annotation]


def _events(database: Database) -> Iterator[DatabaseEvent]:
    texts = {number: demangled(text) for number, text in database.texts("StringTable", "_id_").items()}
    begun: dict[int, dict[str, Any]] = {}
    columns = ("id", "name", "timestamp", "objectKind", "objectId")
    # Only a start has a name; it sorts before an end at the same time, as in a range of no length.
    markers = sorted(
        database.rows(_MARKERS, columns),
        key=lambda row: (database.time(row, "timestamp"), not row["name"]),
    )
    for row in markers:
        number = database.number(row, "id")
        if row["name"]:
            begun[number] = row
        elif start := begun.pop(number, None):
            yield DatabaseEvent(
                texts.get(start["name"], f"marker {start['name']}"),
                (database.time(start, "timestamp"), database.time(row, "timestamp")),
                thread=_thread_of(start),
            )
    # The thread of a marker is in a blob. If no marker has one, launches get no thread either.
    has_threads = any(row["objectKind"] == _THREAD_KIND for row in markers)
    for row in database.rows(_RUNTIME, ("start", "end", "threadId", "correlationId", "cbid")):
        yield DatabaseEvent(
            f"CUDA runtime call {row['cbid']}" if row["cbid"] != _LAUNCH else "cudaLaunchKernel",
            database.span(row),
            thread=database.number(row, "threadId") & 0xFFFFFFFF if has_threads else 0,
            activity_type="cuda_runtime",
            correlation_id=database.number(row, "correlationId"),
        )
    yield from device_rows(
        database,
        [_KERNELS, "CUPTI_ACTIVITY_KIND_KERNEL"],
        texts,
        name_column="name",
        call_of=lambda row: database.reference(row, "correlationId"),
    )


def _thread_of(marker: dict[str, Any]) -> int:
    where = marker["objectId"]
    if marker["objectKind"] != _THREAD_KIND or not isinstance(where, bytes) or len(where) < _THREAD.size:
        return 0
    thread: int = _THREAD.unpack_from(where)[1]
    return thread
