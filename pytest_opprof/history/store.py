"""The history of a store: where it lies, and how a run gets into it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_opprof.baselines.folder import FOLDER
from pytest_opprof.baselines.git import Git
from pytest_opprof.history.log import HistoryLog
from pytest_opprof.history.record import record_of

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_opprof.results.run import Run

_FOLDER = "history"
_URI = re.compile(r"([a-z][a-z0-9+.-]*):(.*)", re.DOTALL)


def history_of(uri: str, *, root: Path) -> HistoryLog:
    """The history beside a store; that of a store which is no ``dir:`` lies in ``.opprof``.

    Args:
        uri: the store's, ``dir:PATH`` or a path alone; whether it can be meant is for the store to say.
        root: the folder that a relative path starts from.
    """
    found = _URI.fullmatch(uri)
    kind, path = (found[1], found[2]) if found else ("dir", uri)
    return HistoryLog(root / (path if kind == "dir" else FOLDER) / _FOLDER)


def remember(log: HistoryLog, run: Run, *, repository: Path) -> bool:
    """Append a run to a history.

    Returns:
        Whether it had a test to remember.

    Raises:
        StoreError: the log cannot be written; what it held is as it was.
    """
    committed = Git(repository).committed(run.commit.id) if run.commit else None
    return log.append([record_of(run, committed=committed)]) > 0
