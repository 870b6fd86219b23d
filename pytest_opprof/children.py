"""Start a process in its own session, so that a signal at any moment leaves no part of it behind.

A measured test may have replaced what starts and ends processes: that is taken when this module is imported.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from subprocess import Popen
from threading import Event, Lock, Thread
from typing import Any, Final, Self

_kill_group: Final[Any] = getattr(os, "killpg", None)  # Windows has none


def started(command: Sequence[str], **options: Any) -> Popen[Any]:
    """Start a process as the leader of its own session; if this call is interrupted, the session is killed.

    If a signal handler raises while ``subprocess.Popen()`` runs, the process already exists but is lost.
    Handlers run only in the main thread, so another thread starts the process.
    """
    made: list[Popen[Any]] = []
    faults: list[BaseException] = []
    # Whoever takes it first decides: the other thread starts the process, or this one prevents that.
    begun = Lock()
    done = Event()

    def start() -> None:
        if not begun.acquire(blocking=False):
            return
        try:
            made.append(Popen(command, start_new_session=True, **options))
        except BaseException as error:  # noqa: BLE001  # it is raised where it was asked for
            faults.append(error)
        finally:
            done.set()

    try:
        Thread(target=start).start()
        done.wait()  # not join(): before 3.13 it considers the thread ended if a handler raises
    except BaseException:
        if not begun.acquire(blocking=False):
            done.wait()
        for process in made:
            with process:  # waits for its end, and closes its pipes
                send(process, signal.SIGKILL)
        raise
    if faults:
        raise faults[0]
    return made[0]


class Tether:
    """A context manager that ends a `started` process and its group if this process dies, even by SIGKILL.

    It inherits one end of a pipe. Only this process has the other end, and the kernel signals the group when
    that is closed: a process that measures needs no thread for this. Only Linux can do it.

    Attributes:
        end: The descriptor for it to inherit.
    """

    def __enter__(self) -> Self:
        self.end, self._ours = os.pipe()
        return self

    def tie(self, process: Popen[Any]) -> None:
        """Tie a process that inherited `end`."""
        import fcntl  # noqa: PLC0415  # Windows has none

        if hasattr(fcntl, "F_SETSIG"):
            with contextlib.suppress(OSError):
                fcntl.fcntl(self.end, fcntl.F_SETOWN, -process.pid)
                fcntl.fcntl(self.end, fcntl.F_SETSIG, signal.SIGKILL)
                fcntl.fcntl(self.end, fcntl.F_SETFL, os.O_ASYNC)

    def untie(self) -> None:
        """Let what the process left in the background go on."""
        import fcntl  # noqa: PLC0415

        with contextlib.suppress(OSError):
            fcntl.fcntl(self.end, fcntl.F_SETFL, 0)

    def __exit__(self, *_: object) -> None:
        os.close(self.end)
        os.close(self._ours)


def send(process: Popen[Any], kind: signal.Signals) -> None:
    """Send a signal to the process group of a `started` process."""
    # 1 and 0 are all processes of this user, and our own group: the id of a mock, as an integer, is 1.
    pid: object = process.pid
    if isinstance(pid, int) and pid > 1:
        with contextlib.suppress(ProcessLookupError):
            _kill_group(pid, kind)


def is_gone(process: Popen[Any]) -> bool:
    """Whether a `started` process and all of its process group have ended, even if nobody has reaped them."""
    if process.poll() is None:
        return False
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            # The name before them is in parentheses, and may have any character.
            state, _, group = path.read_text(errors="replace").rpartition(")")[2].split()[:3]
            if int(group) == process.pid and state not in {"Z", "X"}:
                return False
    return True
