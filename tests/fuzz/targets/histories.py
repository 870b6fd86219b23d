"""The history: its segments, and runs that are imported into it."""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path
from typing import Final

from fuzz.target import Target, put, refusals_end_here

from pytest_opprof.baselines.git import Git
from pytest_opprof.history.importing import find_runs
from pytest_opprof.history.lines import to_csv, to_json, trend_lines
from pytest_opprof.history.log import HistoryLog
from pytest_opprof.history.reader import HistoryReader
from pytest_opprof.history.trend import trend_of, wanted_metrics

_SEGMENT: Final = "0123456789abcdef.jsonl"
_TEXTS: Final = ("aten::mul", "ops.count", "wall_time", "fingerprint")


def _empty(folder: Path) -> Path:
    history = folder / "history"
    shutil.rmtree(history, ignore_errors=True)
    history.mkdir()
    return history


def _look(log: HistoryLog) -> None:
    """Run every query of ``opprof history`` on each test."""
    reader = HistoryReader(log)
    assert all(reader.notes)
    for node_id in reader.tests():
        with refusals_end_here():
            results = reader.results(node_id)
            trends = [trend_of(node_id, path, results) for path in wanted_metrics(None, results)]
            list(trend_lines(trends, last=-1, width=100))
            to_json(trends)
            to_csv(trends)


def _read_segment(data: bytes, folder: Path) -> None:
    history = _empty(folder)
    put(history, _SEGMENT, data)
    log = HistoryLog(history)
    _look(log)
    reader = HistoryReader(log)
    before = reader.run_ids()
    log.compact()
    reader = HistoryReader(log)
    assert reader.run_ids() <= before
    _look(log)


@functools.cache
def _no_repository() -> Git:
    return Git(Path(tempfile.gettempdir()))


def _import(data: bytes, folder: Path) -> None:
    history = _empty(folder)
    log = HistoryLog(history / "log")
    named, found = put(history, "named.json.gz", data), history / "found"
    found.mkdir()
    put(found, "run.json", data)
    records = [
        *find_runs([found], known=(), git=_no_repository()).records,
        *find_runs([named], known=(), git=_no_repository()).records,
    ]
    log.append(records)
    _look(log)


TARGETS: Final = (
    Target(name="history", read=_read_segment, words=_TEXTS),
    Target(name="import", read=_import, words=_TEXTS),
)
