"""Starting a process in a session of its own, so that a signal at any moment leaves none of it behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from typing import Any


def started(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a process, the leader of a session of its own; all of it is ended where this is interrupted.

    A signal's handler that raises while ``subprocess.Popen()`` runs loses the process, which exists by then.
    Handlers run in the main thread alone, so another one starts it.

    Args:
        command: The program and its arguments.
        options: `subprocess.Popen`'s.

    Raises:
        OSError: It cannot be started.
    """
    made: list[subprocess.Popen[Any]] = []
    faults: list[Exception] = []
    # Whoever takes it first decides: the other thread, that it starts the process, or this one, that none is.
    begun = threading.Lock()
    done = threading.Event()

    def start() -> None:
        if not begun.acquire(blocking=False):
            return
        try:
            made.append(subprocess.Popen(command, start_new_session=True, **options))
        except Exception as error:  # noqa: BLE001  # it is raised where it was asked for
            faults.append(error)
        finally:
            done.set()

    try:
        threading.Thread(target=start).start()
        done.wait()  # not join(): before 3.13 it takes a thread for ended if a handler raises in it
    except BaseException:
        if not begun.acquire(blocking=False):
            done.wait()
        for process in made:
            with process:  # waits for its end, and closes what it wrote to
                send(process, signal.SIGKILL)
        raise
    if faults:
        raise faults[0]
    return made[0]


def send(process: subprocess.Popen[Any], kind: signal.Signals) -> None:
    """Send a signal to a process that was `started`, and to all that are in its session's first group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, kind)
