"""The index's tables: how segments get in, and how one test's results get out.

A row of ``series`` has what a test measured in the runs of one piece of a segment, packed in integers of 64
bits: run, counts, how many values, the values. So 5,000,000 results are some 25,000 rows, and those of one
test are found at once.
"""

from __future__ import annotations

import json
from array import array
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pytest_opprof.history.entries import DefinitionEntry, RunHead, read_entries
from pytest_opprof.history.record import counts_from
from pytest_opprof.results.run import Commit, Environment

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from pytest_opprof.history.entries import RunEntry
    from pytest_opprof.history.log import Segment
    from pytest_opprof.history.record import Counts

# A file of another version is made anew: it is a cache.
VERSION: Final = 1
_SCHEMA: Final = """
CREATE TABLE segment (name TEXT PRIMARY KEY, size INTEGER, modified INTEGER, end INTEGER, damaged INTEGER);
CREATE TABLE run (id INTEGER PRIMARY KEY, run_id TEXT UNIQUE, created TEXT, committed TEXT, commit_id TEXT,
                  dirty INTEGER, branch TEXT, name TEXT, environment INTEGER);
CREATE TABLE test (id INTEGER PRIMARY KEY, node_id TEXT UNIQUE);
CREATE TABLE definition (id INTEGER PRIMARY KEY, digest TEXT UNIQUE, test INTEGER, text TEXT);
CREATE TABLE series (id INTEGER PRIMARY KEY, test INTEGER, data BLOB);
CREATE INDEX series_of_test ON series (test);
CREATE TABLE lost (results INTEGER);
"""
_TABLES: Final = ("segment", "run", "test", "definition", "series", "lost")
_HEADER: Final = 3  # of a result in a series: run, counts, how many values


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one run measured of one test."""

    run: RunHead
    environment: Environment
    counts: Counts
    measured: tuple[int, ...]


def create_or_check(connection: sqlite3.Connection) -> None:
    """Make the tables of an empty file.

    Raises:
        ValueError: The file is of another release.
        sqlite3.Error: It is not a database, or it cannot be used now.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (count,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not count:
        connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
    elif version != VERSION:
        raise ValueError(f"this is of version {version}")


def clear(connection: sqlite3.Connection) -> None:
    """Forget everything."""
    for table in _TABLES:
        connection.execute(f"DELETE FROM {table}")  # noqa: S608 - a name of this module's


def ingest(connection: sqlite3.Connection, segment: Segment) -> None:
    """Take in what a segment has that is not in the tables yet.

    Raises:
        StoreError: The segment cannot be read.
    """
    row = connection.execute(
        "SELECT end, damaged FROM segment WHERE name = ?", (segment.path.name,)
    ).fetchone()
    start, damaged = row or (0, 0)
    intake = _Intake(connection)
    chunk = read_entries(segment.path, start=start, known=intake.defined)
    intake.take(chunk.entries)
    connection.execute(
        "REPLACE INTO segment VALUES (?, ?, ?, ?, ?)",
        (segment.path.name, segment.size, segment.modified_ns, chunk.end, damaged + chunk.damaged),
    )


def results(connection: sqlite3.Connection, node_id: str) -> Iterator[Result]:
    """What was measured of a test, in no order.

    Raises:
        sqlite3.Error, ValueError, LookupError: the file is damaged.
    """
    found = connection.execute("SELECT id FROM test WHERE node_id = ?", (node_id,)).fetchone()
    if found is None:
        return
    heads = _heads(connection)
    texts = connection.execute("SELECT id, text FROM definition WHERE test = ?", found)
    counts = {identity: counts_from(json.loads(text)) for identity, text in texts}
    latest = {}
    for (data,) in connection.execute("SELECT data FROM series WHERE test = ? ORDER BY id", found):
        packed = array("q", data)
        at = 0
        while at < len(packed):
            run, counted, length = packed[at : at + _HEADER]
            latest[run] = (counted, tuple(packed[at + _HEADER : at + _HEADER + length]))
            at += _HEADER + length
    for run, (counted, measured) in latest.items():
        head, environment = heads[run]
        yield Result(run=head, environment=environment, counts=counts[counted], measured=measured)


def _heads(connection: sqlite3.Connection) -> dict[int, tuple[RunHead, Environment]]:
    texts = connection.execute("SELECT id, text FROM definition WHERE test IS NULL")
    environments = {identity: Environment(**json.loads(text)) for identity, text in texts}
    return {row[0]: (_head(row), environments[row[8]]) for row in connection.execute("SELECT * FROM run")}


def _head(row: tuple[Any, ...]) -> RunHead:
    _, run_id, created, committed, commit, dirty, branch, name, _ = row
    return RunHead(
        run_id=run_id,
        created=datetime.fromisoformat(created),
        committed=datetime.fromisoformat(committed) if committed else None,
        commit=None if commit is None else Commit(id=commit, dirty=bool(dirty), branch=branch),
        name=name,
    )


class _Intake:
    """Entries on their way into the tables."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        defined = connection.execute("SELECT digest, id, test FROM definition")
        self.defined = {digest: (identity, test) for digest, identity, test in defined}
        self._tests: dict[str, int] = dict(connection.execute("SELECT node_id, id FROM test"))
        self._runs = {run_id for (run_id,) in connection.execute("SELECT run_id FROM run")}
        self._series: dict[int, list[int]] = defaultdict(list)
        # By the digest of a test's counts: where its results go, and what they point to.
        self._targets: dict[str, tuple[list[int], int]] = {}
        self._lost = 0

    def take(self, entries: tuple[DefinitionEntry | RunEntry, ...]) -> None:
        # What is defined too late is: lines of a damaged segment may stand in any order.
        runs = []
        for entry in entries:
            if isinstance(entry, DefinitionEntry):
                self._define(entry)
            else:
                runs.append(entry)
        for run in runs:
            if run.head.run_id not in self._runs:
                self._add(run)
        rows = ((test, array("q", data).tobytes()) for test, data in self._series.items())
        self._connection.executemany("INSERT INTO series (test, data) VALUES (?, ?)", rows)
        if self._lost:
            self._connection.execute("INSERT INTO lost VALUES (?)", (self._lost,))

    def _define(self, entry: DefinitionEntry) -> None:
        digest, text = entry.definition.digest, entry.definition.text
        if digest in self.defined:
            return
        test = None if entry.counts is None else self._test(entry.counts.node_id)
        inserted = self._connection.execute(
            "INSERT INTO definition (digest, test, text) VALUES (?, ?, ?)", (digest, test, text)
        )
        self.defined[digest] = (inserted.lastrowid, test)

    def _test(self, node_id: str) -> int:
        known = self._tests.get(node_id)
        if known is None:
            known = self._connection.execute("INSERT INTO test (node_id) VALUES (?)", (node_id,)).lastrowid
            assert known is not None, "an insert has a row"
            self._tests[node_id] = known
        return known

    def _add(self, entry: RunEntry) -> None:
        environment, test = self.defined.get(entry.environment, (None, None))
        if environment is None or test is not None:
            self._lost += len(entry.tests)
            return
        run, targets = self._insert(entry.head, environment), self._targets
        # Nothing but this runs millions of times.
        for digest, values in entry.tests.items():
            if digest in targets or self._has_target(digest):
                data, counts = targets[digest]
                data += (run, counts, len(values), *values)
            else:
                self._lost += 1

    def _has_target(self, digest: str) -> bool:
        counts, test = self.defined.get(digest, (None, None))
        if test is None:
            return False
        self._targets[digest] = self._series[test], counts
        return True

    def _insert(self, head: RunHead, environment: int) -> int:
        self._runs.add(head.run_id)
        commit = (
            (head.commit.id, head.commit.dirty, head.commit.branch) if head.commit else (None, None, None)
        )
        committed = head.committed.astimezone(UTC).isoformat() if head.committed else None
        inserted = self._connection.execute(
            "INSERT INTO run (run_id, created, committed, commit_id, dirty, branch, name, environment)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (head.run_id, head.created.isoformat(), committed, *commit, head.name, environment),
        )
        assert inserted.lastrowid is not None, "an insert has a row"
        return inserted.lastrowid
