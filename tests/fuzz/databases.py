"""SQLite files of fuzzed contents: as raw bytes, or as tables in JSON, which are valid more often."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

_MAGIC: Final = b"SQLite format 3\0"
# Small pages, so that small files have some.
_PAGE: Final = 512
_MOST_ROWS: Final = 200


def write_database(path: Path, data: bytes) -> bool:
    """Make the file; return whether it exists.

    Args:
        path: Replaced if it exists.
        data: A database's bytes, or JSON as `dump_database` writes it.
    """
    path.unlink(missing_ok=True)
    if data.startswith(_MAGIC):
        path.write_bytes(data)
        return True
    try:
        document = json.loads(data)
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode = OFF")
            database.execute("PRAGMA synchronous = OFF")
            database.execute(f"PRAGMA page_size = {_PAGE}")
            database.execute("BEGIN")
            for name, table in document["tables"].items():
                _write_table(database, name, table)
            database.execute(f"PRAGMA user_version = {int(document.get('version', 0))}")
            database.execute("COMMIT")
    except (sqlite3.Error, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        return False  # SQLite cannot hold it
    return True


def _write_table(database: sqlite3.Connection, name: str, table: dict[str, Any]) -> None:
    columns = ", ".join(table["columns"])
    database.execute(f'CREATE TABLE "{name}" ({columns})')
    places = ", ".join("?" * len(table["columns"]))
    rows = [[_value(value) for value in row] for row in table["rows"][:_MOST_ROWS]]
    database.executemany(f'INSERT INTO "{name}" VALUES ({places})', rows)  # noqa: S608 - a fuzzed table


def _value(value: Any) -> Any:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value


def dump_database(path: Path) -> bytes:
    """The tables of a database, as JSON that `write_database` takes."""
    with closing(sqlite3.connect(path)) as database:
        tables = {}
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = [
                f"{column} {kind}".strip()
                for _, column, kind, *_ in database.execute(f'PRAGMA table_info("{name}")').fetchall()
            ]
            rows = database.execute(f'SELECT * FROM "{name}"').fetchall()  # noqa: S608 - our own
            tables[name] = {
                "columns": [
                    column.replace("end ", '"end" ', 1) if column.startswith("end ") else column
                    for column in columns
                ],
                "rows": [
                    [{"hex": value.hex()} if isinstance(value, bytes) else value for value in row]
                    for row in rows
                ],
            }
        (version,) = database.execute("PRAGMA user_version").fetchone()
    return json.dumps({"version": version, "tables": tables}).encode("ascii")
