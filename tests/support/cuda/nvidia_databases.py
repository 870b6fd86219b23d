"""Small databases in the formats of nvprof and Nsight Systems."""

from __future__ import annotations

import random
import sqlite3
import struct
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(slots=True, kw_only=True)
class NvprofRows:
    """Rows of the tables of an nvprof database, as tuples.

    Attributes:
        texts: Number, text.
        markers: Number, name's number (0: the end), time, thread (None: unknown).
        calls: Start, end, thread, correlation, cbid.
        kernels: Start, end, name's number, correlation.
        copies: Start, end, kind, correlation.
    """

    texts: Sequence[tuple[Any, ...]] = ()
    markers: Sequence[tuple[Any, ...]] = ()
    calls: Sequence[tuple[Any, ...]] = ()
    kernels: Sequence[tuple[Any, ...]] = ()
    copies: Sequence[tuple[Any, ...]] = field(default=())


def write_nvprof(path: Path, rows: NvprofRows) -> Path:
    """Write a database as nvprof does."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE StringTable (_id_ INTEGER, value TEXT)")
        database.executemany("INSERT INTO StringTable VALUES (?, ?)", rows.texts)
        database.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER "
            "(_id_ INTEGER, id INTEGER, name INTEGER, timestamp INTEGER, objectKind INTEGER, objectId BLOB)"
        )
        for number, name, time, thread in rows.markers:
            blob = None if thread is None else struct.pack("=IIq", 17, thread, 0)
            database.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (NULL, ?, ?, ?, ?, ?)",
                (number, name, time, None if thread is None else 2, blob),
            )
        database.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (_id_ INTEGER PRIMARY KEY, "
            "start INTEGER, end INTEGER, threadId INTEGER, correlationId INTEGER, cbid INTEGER)"
        )
        database.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (NULL, ?, ?, ?, ?, ?)", rows.calls
        )
        database.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (start INTEGER, end INTEGER, name INTEGER, "
            "correlationId INTEGER, deviceId INTEGER DEFAULT 0, streamId INTEGER DEFAULT 7)"
        )
        database.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (start, end, name, correlationId) "
            "VALUES (?, ?, ?, ?)",
            rows.kernels,
        )
        database.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, copyKind INTEGER, "
            "correlationId INTEGER, deviceId INTEGER DEFAULT 0, streamId INTEGER DEFAULT 7)"
        )
        database.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY (start, end, copyKind, correlationId) VALUES (?, ?, ?, ?)",
            rows.copies,
        )
        database.commit()
    return path


def random_nvprof(seed: int) -> NvprofRows:
    """Ranges that nest and overlap, with kernels launched in them and outside."""
    chance = random.Random(seed)  # noqa: S311  # no secret
    markers: list[tuple[Any, ...]] = []
    for number in range(1, chance.randint(1, 8)):
        start = 2 * chance.randint(0, 500)
        end = start + 2 * chance.randint(0, 250)
        markers += [(number, chance.randint(1, 3), start, None), (number, 0, end, None)]
    calls: list[tuple[Any, ...]] = []
    kernels: list[tuple[Any, ...]] = []
    for correlation in range(chance.randint(0, 8)):
        # Never exactly at a marker's time: torch and we disagree whether that is inside the range.
        start = 2 * chance.randint(0, 700) + 1
        calls.append((start, start + 2 * chance.randint(0, 15), 5, correlation, 211))
        if chance.random() < 0.8:
            begin = start + chance.randint(10, 90)
            kernels.append((begin, begin + chance.randint(0, 99), chance.randint(3, 4), correlation))
    chance.shuffle(markers)
    return NvprofRows(
        texts=[(1, "forward"), (2, "_ZN2at6native4gemmEv"), (3, "loss"), (4, "kernel")],
        markers=markers,
        calls=calls,
        kernels=kernels,
    )


def write_nsys(path: Path, **tables: Sequence[dict[str, Any]]) -> Path:
    """Write tables of an Nsight Systems export; each row names its columns."""
    with closing(sqlite3.connect(path)) as database:
        for table, rows in tables.items():
            columns = list(dict.fromkeys(column for row in rows for column in row)) or ["id"]
            database.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
            for row in rows:
                database.execute(
                    f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})",  # noqa: S608  # ours
                    [row.get(column) for column in columns],
                )
        database.commit()
    return path
