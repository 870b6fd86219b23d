"""The databases of NVIDIA's profilers, opened read-only."""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from pytest_opprof.errors import DocumentError, StoreError
from pytest_opprof.events.device import DeviceType

_COPY_KINDS: Final = dict(
    enumerate(("HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"), start=1)
)
_DEVICE_COLUMNS: Final = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid")
_LATEST_NS: Final = 2**61  # some 73 years


class Database:
    """The tables of a profiler's database. Errors name the file."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._tables = {name for (name,) in self.query("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def query(self, query: str) -> Iterator[tuple[Any, ...]]:
        """The rows of an SQL query, which must never come from a file or a user."""
        try:
            yield from self._connection.execute(query)
        except (sqlite3.Error, OverflowError) as error:
            raise DocumentError(f"{self.path} cannot be read as a profiler's database: {error}") from error

    def has(self, table: str) -> bool:
        """Whether there is a table of that name."""
        return table in self._tables

    def rows(self, table: str, columns: Sequence[str], *, where: str = "1") -> Iterator[dict[str, Any]]:
        """The rows of a table, each by column name; none if there is no such table.

        A column that the table lacks is None in each row. The condition is SQL, never from a file or a user.
        """
        if not self.has(table):
            return
        there = {row[1] for row in self.query(f'PRAGMA table_info("{table}")')}
        chosen = ", ".join(f'"{name}"' if name in there else f'NULL AS "{name}"' for name in columns)
        for row in self.query(f'SELECT {chosen} FROM "{table}" WHERE {where}'):  # noqa: S608  # our own names
            yield dict(zip(columns, row, strict=True))

    def number(self, row: dict[str, Any], column: str) -> int:
        """A whole number of a row; a `DocumentError` for anything else, which SQLite lets any column hold."""
        value = row[column]
        if not isinstance(value, int):
            raise DocumentError(f"{self.path}: {column} is {value!r:.80} instead of a whole number")
        return value

    def reference(self, row: dict[str, Any], column: str) -> int:
        """The number of something else; 0 if the row names none."""
        return 0 if row[column] is None else self.number(row, column)

    def time(self, row: dict[str, Any], column: str) -> int:
        """A time of a row, nanoseconds on the profiler's clock, small enough for differences."""
        value = self.number(row, column)
        if not -_LATEST_NS <= value <= _LATEST_NS:
            raise DocumentError(f"{self.path}: {column} is {value}, which is not a time in nanoseconds")
        return value

    def span(self, row: dict[str, Any]) -> tuple[int, int]:
        """The ``start`` and ``end`` of a row; of no length if CUPTI has no end, and says 0."""
        start = self.time(row, "start")
        return start, max(start, self.time(row, "end"))

    def texts(self, table: str, key: str) -> dict[int, str]:
        """The texts of a table by number."""
        return {self.number(row, key): str(row["value"]) for row in self.rows(table, (key, "value"))}


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    """Open a database until the block ends."""
    if not path.is_file():
        raise StoreError(f"{path} is not a file: give the SQLite file that nvprof or nsys export wrote")
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be opened: {error}") from error
    connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
    with closing(connection):
        yield Database(path, connection)


class DatabaseEvent:
    """A row of a profiler's database, with the methods of `KinetoEvent` and those in `told`.

    Args:
        span: Start and end, nanoseconds on the profiler's clock.
        thread: The host thread it began on.
        end_thread: The thread it ended on (default: `thread`).
        told: More answers by the name of Kineto's method; without an ``activity_type`` it is a range.
    """

    __slots__ = ("_told",)

    def __init__(
        self, name: str, span: tuple[int, int], *, thread: int = 0, end_thread: int | None = None, **told: Any
    ) -> None:
        self._told = {"activity_type": "user_annotation", **told} | {
            "name": name,
            "start_ns": span[0],
            "end_ns": span[1],
            "start_thread_id": thread,
            "end_thread_id": thread if end_thread is None else end_thread,
            "is_user_annotation": "activity_type" not in told,
        }

    def __getattr__(self, what: str) -> Callable[[], Any]:
        if what not in self._told:
            raise AttributeError(what)
        return lambda: self._told[what]


class DatabaseResult:
    """A profiler's recording in the form of Kineto's result."""

    def __init__(self, events: Sequence[DatabaseEvent]) -> None:
        self._events = events

    def events(self) -> Sequence[Any]:
        """The events."""
        return self._events

    def trace_start_ns(self) -> int:
        """When the first event began, nanoseconds."""
        return min((event.start_ns() for event in self._events), default=0)


def device_rows(
    database: Database,
    kernels: Sequence[str],
    texts: Mapping[int, str],
    *,
    name_column: str,
    call_of: Callable[[dict[str, Any]], int],
) -> Iterator[DatabaseEvent]:
    """The kernels, copies, fills and graphs of a database.

    `name_column` has a kernel's name, or its number in `texts`; `call_of` gives the number of the call that a
    row belongs to.
    """
    event_of = functools.partial(_device_event, database, call_of)
    for table in kernels:
        for row in database.rows(table, (*_DEVICE_COLUMNS, name_column)):
            name = row[name_column]
            known = texts.get(name, f"kernel {name}") if isinstance(name, int) else str(name)
            yield event_of(row, known, "kernel")
    for row in database.rows("CUPTI_ACTIVITY_KIND_MEMCPY", (*_DEVICE_COLUMNS, "copyKind")):
        direction = _COPY_KINDS.get(row["copyKind"], "unknown")
        yield event_of(row, f"Memcpy {direction}", "gpu_memcpy")
    for row in database.rows("CUPTI_ACTIVITY_KIND_MEMSET", _DEVICE_COLUMNS):
        yield event_of(row, "Memset", "gpu_memset")
    # A graph that was traced as a whole: its kernels, copies and fills have no rows.
    for row in database.rows("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", _DEVICE_COLUMNS):
        yield event_of(row, "CUDA graph", "kernel")


def _device_event(
    database: Database,
    call_of: Callable[[dict[str, Any]], int],
    row: dict[str, Any],
    name: str,
    activity: str,
) -> DatabaseEvent:
    device = database.number(row, "deviceId")
    return DatabaseEvent(
        name,
        database.span(row),
        activity_type=activity,
        linked_correlation_id=call_of(row),
        device_type=DeviceType.CPU if device < 0 else DeviceType.CUDA,
        device_index=max(device, 0),
        device_resource_id=database.reference(row, "streamId"),
    )
