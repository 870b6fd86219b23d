"""Whether a profiler is on: a flag that other libraries ask before they do what only a profiler wants.

The two hooks are torch's. Whoever wants to know replaces them, and calls what was there.
"""

from __future__ import annotations

_is_profiler_enabled = False


def is_profiler_enabled() -> bool:
    """The flag."""
    return _is_profiler_enabled


def set_is_profiler_enabled(enable: bool) -> None:  # noqa: FBT001  # torch's signature
    """Set the flag."""
    global _is_profiler_enabled  # noqa: PLW0603  # it is what torch has: one flag of the process
    _is_profiler_enabled = enable


def run_on_profiler_start() -> None:
    """A recording begins."""
    set_is_profiler_enabled(True)


def run_on_profiler_stop() -> None:
    """A recording ended."""
    set_is_profiler_enabled(False)
