"""Temporary folders, locked while in use, so that the next process removes those of killed ones."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Final, Self

from pytest_opprof.locks import hold, opened

_PREFIX: Final = "opprof-"
_LOCK: Final = "lock"


class Place:
    """A temporary folder as a context manager: made on entry, removed on exit.

    Entering first removes folders of the same kind, such as ``worktree``, that killed processes left. A
    folder is in use while any process that inherited the descriptor `lock` lives.
    """

    def __init__(self, kind: str) -> None:
        self._prefix = f"{_PREFIX}{kind}-"
        self.folder = Path()
        self.lock = -1
        self._opened: os.stat_result | None = None

    def __enter__(self) -> Self:
        """Make the folder; raises `OSError`."""
        for left in Path(tempfile.gettempdir()).glob(f"{self._prefix}*"):
            remove_stale(left)
        try:
            while not self._is_held():
                self._leave()
                self.folder = Path(tempfile.mkdtemp(prefix=self._prefix)).resolve()
                with contextlib.suppress(FileNotFoundError):  # another run took it for an abandoned one
                    self.lock = opened(self.folder / _LOCK, mode=0o600)
                    self._opened = os.fstat(self.lock)
                    hold(self.lock)
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    def _is_held(self) -> bool:
        """Whether the held lock is still in the folder: before it was held, another run could remove both."""
        if self._opened is None:
            return False
        try:
            return os.path.samestat(self._opened, (self.folder / _LOCK).stat())
        except FileNotFoundError:
            return False

    def _leave(self) -> None:
        if self.folder != Path():
            shutil.rmtree(self.folder, ignore_errors=True)
        if self._opened is not None:
            with contextlib.suppress(OSError):
                # A test may close any descriptor, and then open a file of its own under its number.
                if os.path.samestat(self._opened, os.fstat(self.lock)):
                    os.close(self.lock)
        self.lock, self.folder, self._opened = -1, Path(), None


def remove_stale(folder: Path) -> bool:
    """Remove a folder of ours that no living process holds, and say whether it is gone."""
    try:
        found = folder.lstat()
        # In a shared temporary folder anybody can make such names.
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            return False
        lock = opened(folder / _LOCK, mode=0o600)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        hold(lock, limit_s=0)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return False
    finally:
        os.close(lock)
    return not folder.exists()
