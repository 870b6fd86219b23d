"""Find a store's history, and add a run to it."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from pytest_opprof.baselines.folder import FOLDER
from pytest_opprof.baselines.git import Git
from pytest_opprof.baselines.keys import HISTORY
from pytest_opprof.baselines.store import kind_and_place
from pytest_opprof.history.log import HistoryLog
from pytest_opprof.history.record import record_of
from pytest_opprof.results.run import Run


def history_of(uri: str, *, root: Path, project: Path | None = None) -> HistoryLog:
    """The history beside a store; for a store that is not ``dir:`` it is in the project's ``.opprof``.

    Projects that share a folder have separate logs in it, named by repository and rootdir. If the folder is
    inside a project, that project's log needs no name. A relative path starts from `root`, which is pytest's
    rootdir unless `project` is given.
    """
    kind, path = kind_and_place(uri)
    folder = root / path if kind == "dir" else (project or root) / FOLDER
    project = (project or root).resolve()
    is_own = folder.resolve().is_relative_to(project)
    return HistoryLog(folder / HISTORY / ("" if is_own else name_of(project)))


def name_of(project: Path) -> str:
    """A project's unique name: a word for people, and a digest of its repository and folder."""
    git = Git(project)
    place = git.place or str(project)
    word = re.sub(r"[^A-Za-z0-9]+", "-", f"{place}/{git.prefix}".rstrip("/").rpartition("/")[2])
    return f"{word}-{hashlib.sha256(f'{place}:{git.prefix}'.encode()).hexdigest()[:12]}"


def remember(log: HistoryLog, run: Run, *, repository: Path) -> bool:
    """Append a run to a history; False if it has no test to keep."""
    committed = Git(repository).committed(run.commit.id) if run.commit else None
    return log.append([record_of(run, committed=committed)]) > 0
