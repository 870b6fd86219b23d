"""Locks on files and folders that the system drops when their holder dies."""

from __future__ import annotations

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

_POLL_S: Final = 0.05


def opened(path: Path, *, mode: int = 0o666) -> int:
    """A descriptor to hold: of a folder, or of a file that is created if it is missing.

    Windows cannot open a folder. A file in the temporary folder stands in for it, named by the folder's path.
    """
    if not path.is_dir():
        return os.open(path, os.O_RDWR | os.O_CREAT, mode)
    if _WINDOWS is None:
        return os.open(path, os.O_RDONLY)
    digest = hashlib.sha256(os.path.realpath(path).encode()).hexdigest()
    return os.open(Path(tempfile.gettempdir(), f"opprof-{digest[:16]}.lock"), os.O_RDWR | os.O_CREAT, mode)


def hold(descriptor: int, *, shared: bool = False, waits: bool = True) -> None:
    """Lock a file against other processes until its descriptor is closed.

    Args:
        descriptor: Of the file.
        shared: Other shared holders are welcome. Windows has no such locks and takes an exclusive one.
        waits: Wait for the current holder.

    Raises:
        OSError: Another process holds it, or the file system has no locks.
    """
    if _WINDOWS is None:
        fcntl.flock(
            descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if waits else fcntl.LOCK_NB)
        )
        return
    while True:
        try:
            _WINDOWS.locking(descriptor, _WINDOWS.LK_NBLCK, 1)
        except PermissionError:
            if not waits:
                raise
            time.sleep(_POLL_S)
        else:
            return
