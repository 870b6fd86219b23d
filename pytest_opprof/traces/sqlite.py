"""The databases that NVIDIA's profilers write, opened for reading only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_opprof.errors import DocumentError, StoreError
from pytest_opprof.events.device import DeviceType

COPY_KINDS: Final = {
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    5: "AtoA",
    6: "AtoD",
    7: "DtoA",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
}
_DEVICE_COLUMNS: Final = ("start", "end", "deviceId", "streamId", "correlationId")
_LATEST_NS: Final = 2**61  # some 73 years


class Database:
    """One profiler's tables, read with an error that names the file."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._tables = {name for (name,) in self.query("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def query(self, query: str) -> Iterator[tuple[Any, ...]]:
        """The rows that a query finds.

        Args:
            query: In SQL; never from a file or a user.

        Raises:
            DocumentError: They cannot be read.
        """
        try:
            yield from self._connection.execute(query)
        except (sqlite3.Error, OverflowError) as error:
            raise DocumentError(f"{self.path} cannot be read as a profiler's database: {error}") from error

    def has(self, table: str) -> bool:
        """Whether there is a table of that name."""
        return table in self._tables

    def rows(self, table: str, columns: Sequence[str], *, where: str = "1") -> Iterator[dict[str, Any]]:
        """The rows of a table, in the order of their columns' names; none where there is no such table.

        Args:
            columns: Those to read; one that the table has not is None in each row.
            where: Which rows, in SQL; never from a file or a user.

        Raises:
            DocumentError: The table cannot be read.
        """
        if not self.has(table):
            return
        there = {row[1] for row in self.query(f'PRAGMA table_info("{table}")')}
        chosen = ", ".join(f'"{name}"' if name in there else f'NULL AS "{name}"' for name in columns)
        for row in self.query(f'SELECT {chosen} FROM "{table}" WHERE {where}'):  # noqa: S608  # our own names
            yield dict(zip(columns, row, strict=True))

    def number(self, row: dict[str, Any], column: str) -> int:
        """A whole number of a row.

        Raises:
            DocumentError: It is none, as SQLite lets any column hold anything.
        """
        value = row[column]
        if not isinstance(value, int):
            raise DocumentError(f"{self.path}: {column} is {value!r:.80} where a whole number is due")
        return value

    def time(self, row: dict[str, Any], column: str) -> int:
        """A time of a row, nanoseconds on the profiler's clock.

        Raises:
            DocumentError: It is not a whole number, or so large that no difference of two of them is one.
        """
        value = self.number(row, column)
        if not -_LATEST_NS <= value <= _LATEST_NS:
            raise DocumentError(f"{self.path}: {column} is {value}, which is not a time in nanoseconds")
        return value

    def span(self, row: dict[str, Any]) -> tuple[int, int]:
        """The ``start`` and ``end`` of a row; of no length where CUPTI knows no end, and says 0.

        Raises:
            DocumentError: They are not times.
        """
        start = self.time(row, "start")
        return start, max(start, self.time(row, "end"))

    def texts(self, table: str, key: str) -> dict[int, str]:
        """A table of texts by their numbers."""
        return {self.number(row, key): str(row["value"]) for row in self.rows(table, (key, "value"))}


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    """A database, until the block ends.

    Raises:
        StoreError: The file cannot be opened.
        DocumentError: It is not a database.
    """
    if not path.is_file():
        raise StoreError(f"{path} is not a file: give the SQLite file that nvprof or nsys export wrote")
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be opened: {error}") from error
    connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
    with closing(connection):
        yield Database(path, connection)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseEvent:
    """A row of a profiler's database, with what it has of the methods of Kineto's events.

    Attributes:
        name_: What it is called.
        start: Nanoseconds on the profiler's clock.
        end: The same.
        thread: Of the host, where it began.
        end_thread: Where it ended; where it began unless given.
        activity: Kineto's word for what it is.
        correlation: Of a call of the runtime: its number.
        cause: Of device work: the number of the call that launched it; 0 for none known.
        device: Of device work: the device's number; -1 for what is of the host.
        stream: Of device work.
    """

    name_: str
    start: int
    end: int
    thread: int = 0
    end_thread: int | None = None
    activity: str = "user_annotation"
    correlation: int = 0
    cause: int = 0
    device: int = -1
    stream: int = 0

    def name(self) -> str:
        """What it is called."""
        return self.name_

    def start_ns(self) -> int:
        """When it began."""
        return self.start

    def end_ns(self) -> int:
        """When it ended."""
        return self.end

    def start_thread_id(self) -> int:
        """Where it began."""
        return self.thread

    def end_thread_id(self) -> int:
        """Where it ended."""
        return self.thread if self.end_thread is None else self.end_thread

    def activity_type(self) -> str:
        """What it is."""
        return self.activity

    def is_user_annotation(self) -> bool:
        """Whether somebody named it."""
        return self.activity == "user_annotation"

    def correlation_id(self) -> int:
        """Its number."""
        return self.correlation

    def linked_correlation_id(self) -> int:
        """The number of what caused it."""
        return self.cause

    def device_type(self) -> DeviceType:
        """Where it ran."""
        return DeviceType.CPU if self.device < 0 else DeviceType.CUDA

    def device_index(self) -> int:
        """Which device."""
        return max(self.device, 0)

    def device_resource_id(self) -> int:
        """Which stream."""
        return self.stream


class DatabaseResult:
    """What a profiler recorded, as a result of Kineto's."""

    def __init__(self, events: Sequence[DatabaseEvent]) -> None:
        self._events = events

    def events(self) -> Sequence[DatabaseEvent]:
        """The events."""
        return self._events

    def trace_start_ns(self) -> int:
        """When the first of them began."""
        return min((event.start for event in self._events), default=0)


def device_rows(
    database: Database, kernels: Sequence[str], texts: Mapping[int, str], *, name_column: str
) -> Iterator[DatabaseEvent]:
    """The kernels, copies and fills of a database.

    Args:
        kernels: The tables of kernels.
        texts: Names by their numbers.
        name_column: Where a kernel's name, or its number, is.
    """
    for table in kernels:
        for row in database.rows(table, (*_DEVICE_COLUMNS, name_column)):
            name = row[name_column]
            known = texts.get(name, f"kernel {name}") if isinstance(name, int) else str(name)
            yield _device_event(database, row, known, "kernel")
    for row in database.rows("CUPTI_ACTIVITY_KIND_MEMCPY", (*_DEVICE_COLUMNS, "copyKind")):
        direction = COPY_KINDS.get(row["copyKind"], "unknown")
        yield _device_event(database, row, f"Memcpy {direction}", "gpu_memcpy")
    for row in database.rows("CUPTI_ACTIVITY_KIND_MEMSET", _DEVICE_COLUMNS):
        yield _device_event(database, row, "Memset", "gpu_memset")


def _device_event(database: Database, row: dict[str, Any], name: str, activity: str) -> DatabaseEvent:
    start, end = database.span(row)
    return DatabaseEvent(
        name_=name,
        start=start,
        end=end,
        activity=activity,
        cause=database.number(row, "correlationId"),
        device=database.number(row, "deviceId"),
        stream=database.number(row, "streamId"),
    )
