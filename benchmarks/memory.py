"""Reads this process's memory as Linux counts it."""

from __future__ import annotations

import gc
from pathlib import Path


def status_kib(field: str) -> int:
    """A field of /proc/self/status, such as ``VmHWM``, the peak resident memory."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def memory_so_far_kib() -> int:
    """The memory that is resident now. Resets ``VmHWM`` to it."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return status_kib("VmRSS")
