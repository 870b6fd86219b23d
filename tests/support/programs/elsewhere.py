"""Makes a process look like a system without our native modules, for later imports."""

from __future__ import annotations

import fcntl
import importlib
import os
import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, Final

DECIDED: Final = (
    shutil,
    subprocess,
)  # imported now, to detect the real system: later they would find Windows
MISSING: Final = ("fcntl", "grp", "pwd", "resource", "termios")
OF_OS: Final = (
    *("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "fchmod", "fork", "getuid", "killpg"),
    *("register_at_fork", "sched_getaffinity", "statvfs"),
)
OF_SIGNAL: Final = ("SIGHUP", "SIGKILL", "SIGPIPE", "SIGUSR1", "SIGUSR2")


def without_native() -> None:
    """Look like an installation without the native modules."""
    _block("pytest_opprof._collector", "pytest_opprof._fast")


def pretend(system: str) -> None:
    """Look to our modules like macOS (``darwin``) or Windows (``win32``)."""
    without_native()
    here, sys.platform = sys.platform, system
    importlib.import_module("pytest_opprof.capture.native")  # only for our code: pytest would query consoles
    sys.platform = here
    if system == "darwin":
        del os.sched_getaffinity
        return
    _block(*MISSING)
    sys.modules["msvcrt"] = WINDOWS
    for module, names in ((os, OF_OS), (signal, OF_SIGNAL)):
        for name in names:
            delattr(module, name)


def _block(*modules: str) -> None:
    sys.modules |= dict.fromkeys(modules, None)  # type: ignore[arg-type]  # what makes an import fail


def windows_locking(descriptor: int, mode: int, size: int) -> None:
    """``msvcrt.locking``, implemented by the locks of this system."""
    assert (mode, size) == (WINDOWS.LK_NBLCK, 1)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise PermissionError(13, "Permission denied") from error


WINDOWS: Final[Any] = SimpleNamespace(LK_NBLCK=2, locking=windows_locking)
