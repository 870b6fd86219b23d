"""The index: the log once more, by test, in SQLite. A cache that is made anew whenever it is not right."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from pytest_opprof.errors import StoreError
from pytest_opprof.history import tables
from pytest_opprof.history.log import HistoryLog
from pytest_opprof.history.tables import Result
from pytest_opprof.results.files import shown

_Answer = TypeVar("_Answer")

INDEX: Final = "index.sqlite"
_PATIENCE_S: Final = 10.0
# What says that the file may be as good as it was, and that we cannot work with it now.
_IN_THE_WAY: Final = {
    "SQLITE_BUSY": "another process has it locked",
    "SQLITE_READONLY": "it cannot be written",
    "SQLITE_CANTOPEN": "it cannot be opened",
    "SQLITE_PERM": "it cannot be opened",
    "SQLITE_FULL": "the disk is full",
    "SQLITE_IOERR": "the disk failed",
}
# What SQLite raises for a damaged file, and what reading its rows does.
_DAMAGE: Final = (sqlite3.Error, ValueError, LookupError, TypeError, AttributeError)


class _Place(Enum):
    """Where the index is; each is the way out where the one before it fails."""

    FILE = "file"
    NEW_FILE = "new file"
    MEMORY = "memory"


class HistoryIndex:
    """An index that says what its log says."""

    def __init__(self, log: HistoryLog, *, patience_s: float = _PATIENCE_S, is_kept: bool = True) -> None:
        """Bring the index up to date with the log.

        Args:
            log: What it is the index of.
            patience_s: How long to wait for another process that is writing the index.
            is_kept: Whether its file may be used and written; else it is made in memory.

        Raises:
            StoreError: The log cannot be read.
        """
        self._log = log
        self._path: Path = log.folder / INDEX
        self._patience_s = patience_s
        # Without a log there is nothing to keep an index of, nor a folder to keep it in.
        self._place = _Place.FILE if is_kept and log.segments() else _Place.MEMORY
        self._why = ""
        self._connection: sqlite3.Connection | None = None
        self._damaged, self._lost = self._ask(_losses)

    def __enter__(self) -> Self:
        """Use it for a while."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let the file go."""
        self._close()

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the user: what was passed over, and why the index is not kept."""
        found = [
            f"{shown(self._log.folder / name)}: damaged lines passed over: {count}"
            for name, count in self._damaged
        ]
        if self._lost:
            found.append(f"results passed over, as the lines that define them are lost: {self._lost}")
        if self._why:
            found.append(
                f"the index was made anew in memory, as {shown(self._path)} is of no use: {self._why}"
            )
        return tuple(found)

    def tests(self) -> list[str]:
        """The node ids of all tests, in alphabetical order."""
        return self._ask(_tests)

    def run_ids(self) -> set[str]:
        """The runs that there are."""
        return self._ask(_run_ids)

    def results(self, node_id: str, *, name: str | None = None) -> list[Result]:
        """What was measured of a test, oldest commit first.

        Args:
            name: Only runs that were saved under this name.
        """
        found = self._ask(lambda connection: list(tables.results(connection, node_id)))
        wanted = (result for result in found if name is None or result.run.name == name)
        return sorted(wanted, key=lambda result: result.run.order)

    def _ask(self, question: Callable[[sqlite3.Connection], _Answer]) -> _Answer:
        while True:
            try:
                if self._connection is None:
                    self._connection = self._connected()
                    self._catch_up(self._connection)
                return question(self._connection)
            except _DAMAGE as error:
                self._fall_back(error)

    def _connected(self) -> sqlite3.Connection:
        place = ":memory:" if self._place is _Place.MEMORY else self._path
        # Transactions are begun and ended below, where it is clear what belongs into one.
        connection = sqlite3.connect(place, timeout=self._patience_s, isolation_level=None)
        try:
            tables.create_or_check(connection)
            # A cache that a power cut may cost; a killed process costs nothing, as there is a journal.
            connection.execute("PRAGMA synchronous = OFF")
        except BaseException:
            connection.close()
            raise
        return connection

    def _catch_up(self, connection: sqlite3.Connection) -> None:
        """Take in what was appended; begin anew where something else happened to the log."""
        with self._log.shared():
            if not self._news(connection):
                return
            with _transaction(connection):
                # Another process may have done it meanwhile.
                if self._was_rewritten(connection):
                    tables.clear(connection)
                known = _known(connection)
                for segment in self._log.segments():
                    if known.get(segment.path.name) != (segment.size, segment.modified_ns):
                        tables.ingest(connection, segment)

    def _news(self, connection: sqlite3.Connection) -> bool:
        return _known(connection) != {
            segment.path.name: (segment.size, segment.modified_ns) for segment in self._log.segments()
        }

    def _was_rewritten(self, connection: sqlite3.Connection) -> bool:
        now = {segment.path.name: (segment.size, segment.modified_ns) for segment in self._log.segments()}
        return any(
            name not in now or now[name][0] < size or (now[name][0] == size and now[name][1] != modified)
            for name, (size, modified) in _known(connection).items()
        )

    def _fall_back(self, error: Exception) -> None:
        self._close()
        if self._place is _Place.MEMORY:
            raise StoreError(
                f"{shown(self._log.folder)}: no index can be made of the history ({error})"
            ) from error
        code = getattr(error, "sqlite_errorname", "")
        why = next((words for name, words in _IN_THE_WAY.items() if code.startswith(name)), "")
        if not why and self._place is _Place.FILE:
            self._place = _Place.NEW_FILE
            with contextlib.suppress(OSError):
                self._path.unlink()
                return
        self._place, self._why = _Place.MEMORY, why or "it is damaged and cannot be replaced"

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _known(connection: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    rows = connection.execute("SELECT name, size, modified FROM segment")
    return {name: (size, modified) for name, size, modified in rows}


def _losses(connection: sqlite3.Connection) -> tuple[list[tuple[str, int]], int]:
    """The damaged lines by segment, half a line at an end among them, and results that nothing defines."""
    damaged = connection.execute(
        "SELECT name, damaged + (size > end) FROM segment WHERE damaged + (size > end) > 0 ORDER BY name"
    ).fetchall()
    (lost,) = connection.execute("SELECT coalesce(sum(results), 0) FROM lost").fetchone()
    return damaged, lost


def _tests(connection: sqlite3.Connection) -> list[str]:
    return _texts(connection.execute("SELECT node_id FROM test ORDER BY node_id"))


def _run_ids(connection: sqlite3.Connection) -> set[str]:
    return set(_texts(connection.execute("SELECT run_id FROM run")))


def _texts(rows: Iterable[tuple[Any]]) -> list[str]:
    texts = [text for (text,) in rows]
    # A column's type is a wish to SQLite: numbers and nothing may stand in one for text.
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("there is no text where there should be")
    return texts
