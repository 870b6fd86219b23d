"""Traces that are read into tables: odd values of one file, and an ingest that is interrupted."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.kineto.rank_traces import rank_trace, write_job

from pytest_opprof.errors import UsageError
from pytest_opprof.fleet.database import Database
from pytest_opprof.fleet.ingest import ingest
from pytest_opprof.fleet.manifest import Status
from pytest_opprof.fleet.tables import Window, windows_of

RANKS = 16


@pytest.fixture
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


def window(tmp_path: Path) -> Window:
    return windows_of(str(tmp_path / "tables"), "a")[-1]


@pytest.mark.parametrize(
    "odd", [{"hostname": "\ud800"}, {"distributedInfo": {"rank": 2, "world_size": 2**70}}], ids=str
)
def test_odd_values_of_one_file_leave_the_others(
    tmp_path: Path, threads: Executor, odd: dict[str, Any]
) -> None:
    folder = write_job(tmp_path / "job", ranks=RANKS)
    (folder / "rank2.json").write_text(json.dumps(rank_trace(2, ranks=RANKS) | odd))
    files = ingest(str(folder), str(tmp_path / "tables"), job="a", executor=threads)
    assert sum(one.status is Status.OK for one in files) >= RANKS - 1
    assert [one.rank for one in window(tmp_path).manifest()] == list(range(RANKS))


def test_a_name_that_is_not_utf8_is_read(tmp_path: Path, threads: Executor) -> None:
    folder = write_job(tmp_path / "job", ranks=RANKS)
    (folder / "rank2.json").rename(folder / os.fsdecode(b"rank2-\xe9.json"))
    files = ingest(str(folder), str(tmp_path / "tables"), job="a", executor=threads)
    assert {one.status for one in files} == {Status.OK}


def test_an_interrupted_ingest_leaves_the_earlier_job(
    tmp_path: Path, threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_job(tmp_path / "job", ranks=RANKS)
    ingest(str(folder), str(tmp_path / "tables"), job="a", executor=threads)
    query = "SELECT count, self_ns FROM ops WHERE name = 'aten::mul'"
    before = Database([window(tmp_path)]).query(query)
    monkeypatch.setattr(Window, "write_manifest", _interrupted)
    write_job(folder, ranks=RANKS, muls=5)
    with pytest.raises(KeyboardInterrupt):
        ingest(str(folder), str(tmp_path / "tables"), job="a", executor=threads)
    assert Database([window(tmp_path)]).query(query) == before


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_tables_in_a_pattern_are_refused(tmp_path: Path, threads: Executor) -> None:
    folder = write_job(tmp_path / "job", ranks=2)
    with pytest.raises(UsageError, match="choose a path without"):
        ingest(str(folder), str(tmp_path / "out[1]"), job="a", executor=threads)
