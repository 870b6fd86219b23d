"""Our library as the ITT collector of this process, which must be named before torch is loaded."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Final

_ITT_VARIABLE: Final = "INTEL_LIBITTNOTIFY64"
_ARMED_MARK: Final = "OPPROF_ITT_ARMED"  # in the environment: child processes inherit both


def library_path() -> Path:
    """libopprof.so, found without loading it."""
    spec = importlib.util.find_spec("pytest_opprof._collector")
    if spec is None or spec.origin is None:
        raise ImportError("pytest_opprof was installed without its native modules; install it again")
    return Path(spec.origin).parent / "libopprof.so"


def arm_itt() -> str | None:
    """Name our library as the ITT collector, for this process and its children.

    Returns:
        None when done, else the sentence why not: it is too late, or another tool was named before.
    """
    ours = str(library_path())
    named = os.environ.get(_ITT_VARIABLE)
    if named and named != ours:
        return f"ITT is collected by another tool: {_ITT_VARIABLE}={named}"
    if "torch" in sys.modules and not named:
        return (
            "torch was imported before the ITT collector could be named: "
            f"export {_ITT_VARIABLE}={ours} before pytest starts"
        )
    os.environ[_ITT_VARIABLE] = ours
    os.environ[_ARMED_MARK] = "1"
    return None


def itt_is_armed() -> bool:
    """Whether libraries loaded from here on, or from the start, call our collector."""
    return os.environ.get(_ITT_VARIABLE) == str(library_path()) and _collector_is_in_reach()


def _collector_is_in_reach() -> bool:
    """Either we set the variable before torch came, or the user exported it before Python started."""
    return os.environ.get(_ARMED_MARK) == "1" or _exported_at_start()


def _exported_at_start() -> bool:
    """The environment this process was started with, which later changes do not touch."""
    try:
        started_with = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(entry.startswith(_ITT_VARIABLE.encode() + b"=") for entry in started_with)
