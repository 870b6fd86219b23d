"""DuckDB views of windows' tables, queried in one thread and bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from pytest_opprof.errors import StoreError, UsageError
from pytest_opprof.extras import needed
from pytest_opprof.fleet.manifest import RankFile, Status
from pytest_opprof.fleet.rank_rows import TABLES
from pytest_opprof.fleet.tables import Window

_MEMORY: Final = "900MB"


class Database:
    """Views of windows: ``ranks`` of all files, ``ops``, ``collectives`` and ``steps`` of the good ones."""

    def __init__(self, windows: Sequence[Window]) -> None:
        self._duckdb = needed("duckdb")
        self._connection = self._duckdb.connect(
            config={"threads": 1, "memory_limit": _MEMORY, "preserve_insertion_order": False}
        )
        self.files = {window: window.manifest() for window in windows}
        if not any(one.status is Status.OK for files in self.files.values() for one in files):
            raise UsageError(f"no rank of {windows[0].address} could be read: opprof fleet ingest says why")
        files, _ = needed("fsspec.core").url_to_fs(windows[0].address)
        self._is_local = "file" in files.protocol
        if not self._is_local:
            self._connection.register_filesystem(files)
        for table in TABLES:
            self._view(table)
        self.files = {window: self._checked(window) for window in windows}
        pa = needed("pyarrow")
        rows = [
            {"job": window.job, "window": window.window, **asdict(one)}
            for window, files in self.files.items()
            for one in files
        ]
        self._connection.register("ranks", pa.Table.from_pylist(rows))

    def _view(self, table: str) -> None:
        selects = []
        for window, files in self.files.items():
            paths = window.parts(table, (one.part for one in files if one.part))
            protocol = "" if self._is_local else f"{window.root.partition('://')[0]}://"
            bad = sorted(one.file for one in files if one.status is not Status.OK)
            if paths:
                listed = ", ".join(_quoted(f"{protocol}{path}") for path in paths)
                without = f" WHERE file NOT IN ({', '.join(map(str, bad))})" if bad else ""
                selects.append(
                    f'SELECT {_quoted(window.job)} AS job, {_quoted(window.window)} AS "window", * '  # noqa: S608
                    f"FROM read_parquet([{listed}], hive_partitioning=false){without}"
                )
        self.query(f"CREATE OR REPLACE VIEW {table} AS {' UNION ALL '.join(selects)}")

    def _checked(self, window: Window) -> list[RankFile]:
        """The manifest, with files marked as lost if the tables lack some of their rows."""
        counts = 'SELECT file, count(*) FROM {} WHERE job = ? AND "window" = ? GROUP BY file'
        found = {table: dict(self.query(counts.format(table), window.job, window.window)) for table in TABLES}
        return [
            replace(one, status=Status.LOST, error="the tables lack rows of it: ingest it again")
            if one.status is Status.OK
            and any(found[table].get(one.file, 0) != getattr(one, table) for table in TABLES)
            else one
            for one in self.files[window]
        ]

    def query(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        return self.rows(text, *values)[1]

    def rows(self, text: str, *values: object) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Run a statement and return its columns' names and its rows."""
        try:
            answer = self._connection.execute(text, list(values))
            names = [column[0] for column in answer.description or ()]
            return names, answer.fetchall()
        except self._duckdb.IOException as error:
            raise StoreError(f"the tables cannot be read: {error}") from error
        except self._duckdb.Error as error:
            raise UsageError(f"DuckDB refuses the query: {error}") from error


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
