"""Whether a profiler is on: a flag that other libraries check before they do work only for profilers.

The two hooks are torch's. A library that wants to be called replaces them in `pytest_opprof.autograd`, as it
does in torch.autograd.profiler, and calls the previous ones.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

_is_profiler_enabled = False


def is_profiler_enabled() -> bool:
    """Whether a profiler is on."""
    return _is_profiler_enabled


def set_is_profiler_enabled(enable: bool) -> None:  # noqa: FBT001  # torch's signature
    """Set the flag."""
    global _is_profiler_enabled  # noqa: PLW0603  # it is what torch has: one flag of the process
    _is_profiler_enabled = enable


def run_on_profiler_start() -> None:
    """Set the flag when a recording begins."""
    set_is_profiler_enabled(True)


def run_on_profiler_stop() -> None:
    """Clear the flag when a recording ends."""
    set_is_profiler_enabled(False)


def _shared(name: str) -> property:
    def get(_module: ModuleType) -> Any:
        return globals()[name]

    def assign(_module: ModuleType, value: Any) -> None:
        globals()[name] = value

    return property(get, assign)


class SharingModule(ModuleType):
    """A module that has the flag and the hooks under torch's names, also for assignments."""

    _is_profiler_enabled = _shared("_is_profiler_enabled")
    _run_on_profiler_start = _shared("run_on_profiler_start")
    _run_on_profiler_stop = _shared("run_on_profiler_stop")
