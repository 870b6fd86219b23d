"""Record a process from outside: ``opprof attach PID``.

The process listens for a signal (`listen`). The command writes a request into a folder that only their user
can read or write, sends the signal, and waits for the answer. Until then nothing runs in the process: no
thread, no socket, no polling. The signal's handler only starts a thread, which starts or stops the recording
and ends: these need locks that the interrupted program may hold.
"""

from __future__ import annotations

import _thread
import atexit
import json
import os
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pytest_opprof.capture.folders import make_private, spill_folder
from pytest_opprof.capture.native import ABSENCE
from pytest_opprof.errors import OpprofError, UsageError

VARIABLE: Final = "OPPROF_ATTACH"  # if set, a process listens as soon as it imports us
_SIGNAL: Final[int] = getattr(signal, "SIGUSR2", 0)  # Windows has none, and nothing to attach to


def exchange_folder() -> Path:
    """The folder of requests and answers, which only this user may write."""
    folder = spill_folder() / f"opprof-attach-{os.getuid()}"
    try:
        return make_private(folder)
    except OSError as error:
        raise UsageError(f"{error}: set OPPROF_DIR to a folder that only you can write") from error


def place_of(pid: int, what: str) -> Path:
    """The file of a process: ``listening``, ``request`` or ``answer``."""
    return exchange_folder() / f"{pid}.{what}"


def write_whole(path: Path, content: Mapping[str, object]) -> None:
    """Write JSON atomically."""
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(content, file)
    Path(name).replace(path)


class _Attached:
    """Serves the requests to this process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid  # a forked child inherits the handler, and is another
        self._profile: Any = None
        self._serving = _thread.allocate_lock()

    def on_signal(self, _number: int, _frame: object) -> None:
        # No threading.Thread: the signal may come while the program starts one and holds its lock.
        _thread.start_new_thread(self._serve, ())

    def _serve(self) -> None:
        """Answer the request to this process, if there is one: a forked child has none."""
        with self._serving:
            try:
                path = place_of(os.getpid(), "request")
                request = json.loads(path.read_text(encoding="utf-8"))
                path.unlink()
            except (OSError, ValueError, OpprofError):
                return
            answer: dict[str, object] = {"id": request.get("id"), "error": None}
            try:
                answer |= self._do(request)
            except Exception as error:  # noqa: BLE001  # whatever it is, it is for who asked
                answer["error"] = f"{type(error).__name__}: {error}"
            write_whole(place_of(os.getpid(), "answer"), answer)

    def _do(self, request: Mapping[str, Any]) -> dict[str, object]:
        from pytest_opprof.profiler.kineto_profile import KinetoProfile  # noqa: PLC0415  # when it is asked for

        if request["action"] == "start":
            if self._profile is not None:
                raise UsageError("another opprof attach is already recording it")
            attached = KinetoProfile(**request["options"])
            attached.start()
            self._profile = attached
            return {}
        attached, self._profile = self._profile, None
        if attached is None:
            raise UsageError("nobody is attached")
        attached.stop()
        attached.export_chrome_trace(request["path"])
        return {"events": len(attached.events())}


def listen() -> None:
    """Let ``opprof attach`` record this process from now on; a second call has no effect.

    A forked child listens if it calls this itself.

    The signal is SIGUSR2. Python runs its handler between bytecodes of the main thread, so during a long call
    of C code ``opprof attach`` waits until that returns. If nothing can be recorded here, this does nothing,
    and ``opprof attach`` says why.

    Raises:
        UsageError: The program has its own handler for the signal, or this is not the main thread.
    """
    if ABSENCE is not None:
        return
    held, pid = signal.getsignal(_SIGNAL), os.getpid()
    attached = getattr(held, "__self__", None)
    if isinstance(attached, _Attached):
        if attached.pid == pid:
            return
    elif held not in {signal.SIG_DFL, signal.SIG_IGN}:
        raise UsageError("this program handles SIGUSR2 itself, which opprof attach would need")
    try:
        signal.signal(_SIGNAL, _Attached(pid).on_signal)
    except ValueError as error:
        raise UsageError(
            "listen() must be called on the main thread, where Python handles signals"
        ) from error
    withdraw(pid)  # left for an earlier process of this number
    path = place_of(pid, "listening")
    write_whole(path, {"pid": pid})
    atexit.register(_leave, path, pid)


def _leave(path: Path, pid: int) -> None:
    if os.getpid() == pid:
        path.unlink(missing_ok=True)


def is_listening(pid: int) -> bool:
    """Whether a process catches the signal and announced that: the signal would kill any other."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return False
    caught = next((line for line in status.splitlines() if line.startswith("SigCgt:")), "SigCgt: 0")
    return place_of(pid, "listening").exists() and bool(int(caught.split()[1], 16) >> (_SIGNAL - 1) & 1)


def send(pid: int, request: Mapping[str, object]) -> None:
    """Write a request, and send the signal; a `UsageError` if the process does not listen."""
    if not is_listening(pid):
        raise UsageError(
            f"process {pid} does not listen: start it with {VARIABLE}=1 and pytest_opprof imported, or have "
            "it call pytest_opprof.listen()"
        )
    if place_of(pid, "request").exists():
        raise UsageError(f"process {pid} has not answered another opprof attach yet: try again later")
    place_of(pid, "answer").unlink(missing_ok=True)
    write_whole(place_of(pid, "request"), request)
    os.kill(pid, _SIGNAL)


def withdraw(pid: int) -> bool:
    """Remove the request to a process; False if there is none, as the process has taken it."""
    try:
        place_of(pid, "request").unlink()
    except FileNotFoundError:
        return False
    return True
