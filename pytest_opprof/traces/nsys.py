"""Databases of Nsight Systems: NVTX ranges, calls of CUDA, and what ran on the devices."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pytest_opprof.errors import DocumentError
from pytest_opprof.events.event_list import EventList
from pytest_opprof.events.kineto_recording import KinetoRecording
from pytest_opprof.traces.sqlite import Database, DatabaseEvent, DatabaseResult, device_rows, opened

_RANGES: Final = "NVTX_EVENTS"
# Of NVTX_EVENTS.eventType: a range on one thread, and one that may end on another.
_PUSH_POP: Final = 59
_START_END: Final = 60
_THREAD_BITS: Final = 0xFFFFFF  # of a globalTid or globalPid; the higher bits are the process and the machine
_CORRELATION_MASK: Final = 0xFFFFFFFF


def load_nsys(path: str | os.PathLike[str]) -> EventList:
    """The ranges, CUDA calls and device work of a database that ``nsys export --type sqlite`` wrote.

    Kernels, copies and fills belong to the innermost range around the call that launched them, on its thread,
    and so do CUDA graphs. A graph is one event, unless ``--cuda-graph-trace=node`` recorded its kernels.

    Raises:
        StoreError: The file cannot be opened.
        DocumentError: It is not such a database.
    """
    with opened(Path(path)) as database:
        if not database.has("StringIds"):
            raise DocumentError(
                f"{path} has no table StringIds, which every export of nsys has; make it with "
                "`nsys export --type sqlite report.nsys-rep`, and for nvprof take load_nvprof"
            )
        events = list(_events(database))
    return EventList([KinetoRecording(DatabaseResult(events))])


class _Calls:
    """The calls of all processes. Each process numbers its own from 1."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._processes: dict[int | None, int] = {}

    def number(self, row: dict[str, Any], column: str) -> int:
        """A number that no call of another process has.

        The column names the process; work without it belongs to the only process.
        """
        at = self._database
        process = None if row[column] is None else at.number(row, column) & ~_THREAD_BITS
        if process is None and len(self._processes) == 1:
            (process,) = self._processes
        before = self._processes.setdefault(process, len(self._processes))
        return (
            at.reference(row, "correlationId") & _CORRELATION_MASK | before << _CORRELATION_MASK.bit_length()
        )


def _events(database: Database) -> Iterator[DatabaseEvent]:
    calls = _Calls(database)
    texts = database.texts("StringIds", "id")
    columns = ("start", "end", "globalTid", "endGlobalTid", "eventType", "text", "textId")
    for row in database.rows(_RANGES, columns, where=f"eventType IN ({_PUSH_POP}, {_START_END})"):
        if row["end"] is None:
            continue  # Still open when the recording ended, so its duration is unknown.
        thread = _thread(database, row, "globalTid")
        ends_on = thread if row["endGlobalTid"] is None else _thread(database, row, "endGlobalTid")
        yield DatabaseEvent(
            str(row["text"]) if row["text"] is not None else texts.get(row["textId"], ""),
            database.span(row),
            thread=thread,
            end_thread=ends_on,
        )
    for row in database.rows(
        "CUPTI_ACTIVITY_KIND_RUNTIME", ("start", "end", "globalTid", "correlationId", "nameId")
    ):
        yield DatabaseEvent(
            _call_name(texts.get(row["nameId"], "CUDA call")),
            database.span(row),
            thread=_thread(database, row, "globalTid"),
            activity_type="cuda_runtime",
            correlation_id=calls.number(row, "globalTid"),
        )
    yield from device_rows(
        database,
        ["CUPTI_ACTIVITY_KIND_KERNEL"],
        texts,
        name_column="demangledName",
        call_of=lambda row: calls.number(row, "globalPid"),
    )


def _thread(database: Database, row: dict[str, Any], column: str) -> int:
    return database.reference(row, column) & _THREAD_BITS


def _call_name(name: str) -> str:
    """A call's name without the version that nsys adds: ``cudaLaunchKernel_v7000``."""
    plain, _, version = name.rpartition("_v")
    return plain if plain and version.isdecimal() else name
