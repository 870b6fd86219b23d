"""Locks on files and folders that the system drops when their holder dies."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib
import os
import tempfile
import time
from pathlib import Path
from typing import Any, Final

try:
    import fcntl
except ImportError:  # Windows
    _WINDOWS: Any = importlib.import_module("msvcrt")
else:
    _WINDOWS = None

LONGEST_S: Final = 60.0  # work under a lock takes seconds at most
_POLL_S: Final = 0.05


def opened(path: Path, *, mode: int = 0o666) -> int:
    """Open a folder, or a file that is created if it is missing, to lock it.

    Windows cannot open a folder. A file in the temporary folder stands in for it, named by the folder's path.
    """
    if not path.is_dir():
        return os.open(path, os.O_RDWR | os.O_CREAT, mode)
    if _WINDOWS is None:
        return os.open(path, os.O_RDONLY)
    digest = hashlib.sha256(os.path.realpath(path).encode()).hexdigest()
    return os.open(Path(tempfile.gettempdir(), f"opprof-{digest[:16]}.lock"), os.O_RDWR | os.O_CREAT, mode)


def hold(descriptor: int, *, shared: bool = False, limit_s: float = LONGEST_S) -> None:
    """Lock a file against other processes until its descriptor is closed.

    Windows has no shared locks and takes an exclusive one. A stopped process never lets go: after `limit_s` a
    TimeoutError says which process holds the lock, as far as the system tells.
    """
    deadline = time.monotonic() + limit_s
    while not _is_held(descriptor, shared=shared):
        if time.monotonic() >= deadline:
            held = f"{_holder(descriptor) or 'another process'} still holds it"
            waited = f" after {limit_s:g} s" if limit_s else ""
            raise TimeoutError(errno.ETIMEDOUT, f"{held}{waited}: end it, or let it finish")
        time.sleep(_POLL_S)


def _is_held(descriptor: int, *, shared: bool) -> bool:
    try:
        if _WINDOWS is None:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        else:
            _WINDOWS.locking(descriptor, _WINDOWS.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _holder(descriptor: int) -> str:
    """The process that holds the lock, if the system says; else empty."""
    inode = str(os.fstat(descriptor).st_ino)
    with contextlib.suppress(OSError, IndexError):
        for line in Path("/proc/locks").read_text(encoding="ascii", errors="replace").splitlines():
            words = line.split()  # 1: FLOCK ADVISORY WRITE <pid> <major>:<minor>:<inode> 0 EOF
            if words[1] == "FLOCK" and words[5].rpartition(":")[2] == inode:
                status = Path(f"/proc/{words[4]}/status").read_text(encoding="utf-8", errors="replace")
                stopped = ", which is stopped," if "\nState:\tT" in status else ""
                return f"process {words[4]}{stopped}"
    return ""
