"""The flight recorder: a process notes its tests while it lives, and a later one reports its death."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from pytest_opprof.baselines.folder import FOLDER
from pytest_opprof.baselines.keys import CRASHES
from pytest_opprof.capture.collector import Collector
from pytest_opprof.errors import OpprofError
from pytest_opprof.recovery.deaths import death_of, keep_trace, told
from pytest_opprof.recovery.sessions import Note, is_leftover, left_sessions, project_of, remove

_MOST_CRASHES: Final = 20  # traces that are kept
_WORKER: Final = "PYTEST_XDIST_WORKER"


@contextlib.contextmanager
def recorded(item: pytest.Item, *, always: bool) -> Iterator[None]:
    """Note in the session file which test runs, until its teardown; `always` keeps the last events too."""
    collector = Collector.instance()
    note = Note(
        project=project_of(item.config.rootpath), worker=os.environ.get(_WORKER, ""), node_id=item.nodeid
    )
    # Our fault is reported when the test is measured; here it must not fail the test.
    with contextlib.suppress(OpprofError):
        collector.note(bytes(note))
        if always:
            collector.watch()
    try:
        yield
    finally:
        with contextlib.suppress(OpprofError):
            collector.unwatch()
            collector.note(b"")


def tell_of_deaths(root: Path) -> list[str]:
    """Report once this project's tests whose process died, and keep their traces.

    Other projects' session files are left for them, and removed after a week; empty ones now.
    """
    lines: list[str] = []
    now_ns, project = time.time_ns(), project_of(root)
    for file in left_sessions():
        note = Note.of(file.note)
        if note is not None and note.project == project:
            death = death_of(file)
            try:
                trace = keep_trace(death, root / FOLDER)
            except OpprofError as error:
                lines += [*told(death, trace=None), f"{error}; opprof recover tries again"]
                continue
            lines += told(death, trace=trace and trace.relative_to(root))
            remove(file)
        elif is_leftover(file, now_ns=now_ns):
            remove(file)
    if lines:
        _prune(root / FOLDER / CRASHES)
    return lines


def _prune(folder: Path) -> None:
    with contextlib.suppress(OSError):  # another session prunes too; what is left is too much, not too little
        traces = sorted(folder.glob("*.json.gz"), key=lambda path: path.stat().st_mtime)
        for path in traces[:-_MOST_CRASHES]:
            path.unlink(missing_ok=True)
