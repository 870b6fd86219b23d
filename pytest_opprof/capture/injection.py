"""Make our library the ITT collector and the NVTX tool of this process.

Each library that carries a copy of an interface reads its environment variable once, at the first call. So
the variable must be set before that call.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_opprof.errors import CaptureUnavailableError


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """An interface that loads the library named by an environment variable."""

    name: str
    variable: str  # names the library
    mark: str  # a second variable, set if we set the first; child processes inherit both
    callers: tuple[str, ...]  # packages whose import makes the first call

    def arm(self) -> str | None:
        """Name our library, for this process and its children; None when done, else a sentence why not.

        It may be too late, another tool may be named, or there is no library.
        """
        try:
            ours = str(library_path())
        except CaptureUnavailableError as error:
            return str(error)
        named = os.environ.get(self.variable)
        if named and named != ours:
            return f"another tool collects {self.name}: {self.variable}={named}"
        early = [caller for caller in self.callers if caller in sys.modules]
        if early and not named:
            return (
                f"{early[0]} was imported before the {self.name} collector was set up: "
                f"export {self.variable}={ours} before pytest starts"
            )
        os.environ[self.variable] = ours
        os.environ[self.mark] = "1"
        return None

    @property
    def is_armed(self) -> bool:
        """Whether libraries loaded from now on, or from the start, call our collector."""
        if os.environ.get(self.variable) != str(library_path()):
            return False
        if os.environ.get(self.mark) == "1":  # we set the variable in time
            return True
        try:  # the initial environment, without later changes: the user may have exported it
            started_with = Path("/proc/self/environ").read_bytes().split(b"\0")
        except OSError:
            return False
        return any(entry.startswith(self.variable.encode() + b"=") for entry in started_with)


ITT: Final = Injection(
    name="ITT", variable="INTEL_LIBITTNOTIFY64", mark="OPPROF_ITT_ARMED", callers=("torch",)
)
# The nvtx package reads the variable at import; CuPy and others when they emit their first range.
NVTX: Final = Injection(
    name="NVTX", variable="NVTX_INJECTION64_PATH", mark="OPPROF_NVTX_ARMED", callers=("nvtx",)
)
INJECTIONS: Final = (ITT, NVTX)


def library_path() -> Path:
    """libopprof.so, found without loading it."""
    spec = importlib.util.find_spec("pytest_opprof._collector")
    if spec is None or spec.origin is None:
        from pytest_opprof.capture.native import ABSENCE  # noqa: PLC0415  # it would load them

        raise CaptureUnavailableError(str(ABSENCE))
    return Path(spec.origin).parent / "libopprof.so"
