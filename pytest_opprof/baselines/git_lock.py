"""The lock that a git process leaves on a ref of ours when it is killed."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Final

# git holds the lock of a ref for milliseconds; who holds one for so long holds nothing any more.
_STALE_S: Final = 600
_REFUSED: Final = re.compile(r"Unable to create '([^'\n]+\.lock)': File exists")


def remove_stale_lock(said: bytes, *, ref: str) -> bool:
    """Remove the lock that git stumbled over, if whoever made it must be dead.

    Args:
        said: What git said.
        ref: The ref that it was to move: no other one's lock is touched.

    Returns:
        Whether it is gone, so that git may be asked again.
    """
    found = _REFUSED.search(said.decode("utf-8", "replace"))
    if found is None:
        return False
    lock = Path(found[1])
    aside = lock.with_name(f"{lock.name}.{os.getpid()}")
    try:
        if not lock.as_posix().endswith(f"/{ref}.lock") or not _is_stale(lock):
            return False
        # Another process may have removed it meanwhile, and made its own: that one is put back.
        lock.rename(aside)
        if not _is_stale(aside):
            os.link(aside, lock)
            aside.unlink()
            return False
        aside.unlink()
    except OSError:
        return False
    return True


def _is_stale(lock: Path) -> bool:
    return time.time() - lock.stat().st_mtime > _STALE_S
