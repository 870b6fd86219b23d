"""The native modules, or their stand-ins where there are none.

All our code imports them from here: ``from pytest_opprof.capture.native import fast, ffi, lib``. Without
them `ABSENCE` says why, ranges do nothing, and everything else that needs native code raises one error.
"""

from __future__ import annotations

import importlib
import importlib.util
import platform
import sys
import sysconfig
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pytest_opprof.errors import CaptureUnavailableError

if TYPE_CHECKING:
    from pytest_opprof import _fast as fast
    from pytest_opprof._collector import ffi, lib
    from pytest_opprof._fast import RecordFunctionFast, range_pop, range_push, record_function

__all__ = [
    "ABSENCE",
    "Absence",
    "RecordFunctionFast",
    "fast",
    "ffi",
    "lib",
    "range_pop",
    "range_push",
    "record_function",
    "require",
]

_SYSTEMS: Final = {"darwin": "macOS", "win32": "Windows"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """Why there are no native modules; `reason` is a clause."""

    reason: str
    is_fault: bool = False

    def __str__(self) -> str:
        return (
            f"nothing can be measured here: {self.reason} (marked tests run as plain tests, and commands on "
            "saved runs work)"
        )


class _Nothing:
    """Stands in for a native module: using it is an error, unless doing nothing is right."""

    # No tool listens to ranges, no device is waited for, and there are no counters.
    _HARMLESS: Final = frozenset(
        {
            "op_counter_name",
            "op_cuda_is_loaded",
            "op_cuda_synchronize",
            "op_emit_depth",
            "op_emit_mark",
            "op_emit_pop",
            "op_emit_push",
        }
    )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # looked up by Python itself, such as inspect and copy
        if name in self._HARMLESS:
            return lambda *_: 0
        if name.isupper():
            return 0  # a constant that modules read at import
        raise CaptureUnavailableError(str(ABSENCE))


def require() -> None:
    """Raise a `CaptureUnavailableError` that says why, if there is no native code."""
    if ABSENCE is not None:
        raise CaptureUnavailableError(str(ABSENCE))


def _unsupported() -> str | None:
    """Why this platform or interpreter is not supported; None if it is."""
    if sys.platform != "linux":
        return f"pytest-opprof records only on Linux, and this is {_SYSTEMS.get(sys.platform, sys.platform)}"
    if sys.implementation.name != "cpython":
        return f"pytest-opprof records only in CPython, and this is {platform.python_implementation()}"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "pytest-opprof needs the global interpreter lock, and this Python is free-threaded"
    if "musl" in str(sysconfig.get_config_var("SOABI")):
        return "pytest-opprof records only with glibc, and this Python was built for musl"
    return None


def _is_pure() -> bool:
    """Whether the package was installed without native modules on purpose."""
    import importlib.metadata  # noqa: PLC0415  # it loads a parser of e-mail, which no other start needs

    try:
        wheel = importlib.metadata.distribution("pytest-opprof").read_text("WHEEL")
    except importlib.metadata.PackageNotFoundError:
        return False
    return "Root-Is-Purelib: true" in (wheel or "")


def _absence() -> Absence | None:
    """Load the native modules; why they are absent, or None.

    In a sub-interpreter it raises: ranges that do nothing would hide a mistake there.
    """
    unsupported = _unsupported()
    if unsupported:
        return Absence(reason=unsupported)
    if importlib.util.find_spec("pytest_opprof._collector") is None:
        if _is_pure():
            return Absence(reason="pytest-opprof was installed with OPPROF_NATIVE=off")
        return Absence(
            reason="the native modules of pytest-opprof are missing: install it again", is_fault=True
        )
    try:
        importlib.import_module("pytest_opprof._fast")
        importlib.import_module("pytest_opprof._collector")
    except ImportError as error:
        if error.name is None:  # raised by `_fast` itself
            raise
        reason = f"the native modules of pytest-opprof cannot be loaded ({error}): install it again"
        return Absence(reason=reason, is_fault=True)
    return None


ABSENCE: Final = _absence()
if not TYPE_CHECKING:
    if ABSENCE is None:
        from pytest_opprof import _fast as fast
        from pytest_opprof._collector import ffi, lib
        from pytest_opprof._fast import RecordFunctionFast, range_pop, range_push, record_function
    else:
        from pytest_opprof.capture.unrecorded import (
            RecordFunctionFast,
            range_pop,
            range_push,
            record_function,
        )

        fast = ffi = lib = _Nothing()
