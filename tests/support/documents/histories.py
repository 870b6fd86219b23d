"""Histories for tests: logs with runs of a test whose numbers the caller gives."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from support.documents.strategies import simple_run, simple_test

from pytest_opprof.history.log import HistoryLog
from pytest_opprof.history.record import RunRecord, record_of
from pytest_opprof.results.run import Commit, Run

FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)


def run_on_day(day: int, *, mul: int = 2, tests: int = 1, **others: Any) -> Run:
    """A run of some tests, each with N multiplications, at its own commit."""
    measured = (
        simple_test({"aten::mul": mul, "work": 1}, node_id=f"t.py::test_{number}") for number in range(tests)
    )
    defaults: dict[str, Any] = {
        "run_id": f"run{day:05}",
        "created": FIRST_DAY + timedelta(days=day),
        "commit": Commit(id=f"{day:040x}", dirty=False, branch="main"),
        "name": "main",
    }
    return simple_run(*measured, **(defaults | others))


def record_on_day(day: int, *, committed: datetime | None = None, **others: Any) -> RunRecord:
    """The run of `run_on_day` as a history record."""
    return record_of(run_on_day(day, **others), committed=committed)


def log_of(folder: Path, muls: Sequence[int], **others: Any) -> HistoryLog:
    """A log with one run per day."""
    log = HistoryLog(folder / "history")
    log.append(record_on_day(day, mul=mul, **others) for day, mul in enumerate(muls))
    return log
