"""Python and C calls: callbacks of ``sys.monitoring``, or on 3.11 a profile function on each thread."""

from __future__ import annotations

import functools
import os
import site
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import CodeType
from typing import Any, Final

from pytest_opprof.capture.native import fast
from pytest_opprof.errors import CaptureUnavailableError

_PACKAGE: Final = f"{Path(__file__).parents[1]}{os.sep}"
_TOOL_NAME: Final = "pytest-opprof"
# Absent before 3.12.
_MONITORING: Final[Any] = getattr(sys, "monitoring", None)
# cProfile takes 2; 0, 1 and 5 belong to debuggers, coverage and optimizers.
_TOOL_IDS: Final = (3, 4)
_DISPLACED: Final = (
    "Python calls were recorded only in part: cProfile, viztracer or sys.setprofile took a thread's only "
    "profile function. Do not use them together, or use Python 3.12 or later"
)


class PythonCalls:
    """Records the calls of all threads while it is enabled, or only those of torch modules.

    Calls that were open before are not events, but stand at the bottom of the events' stacks.
    """

    def __init__(self, *, modules_only: bool, with_modules: bool) -> None:
        self._modules_only = modules_only
        self._with_modules = with_modules
        self._hooks: _Monitoring | _ProfileFunction | None = None

    def enable(self) -> None:
        """The window opened."""
        module_code = _module_code() if self._with_modules else None
        self._hooks = hooks = _ProfileFunction() if _MONITORING is None else _Monitoring()
        try:
            hooks.install(module_code if self._modules_only else None)
            fast.calls_start(_prefixes(), _PACKAGE, module_code, self._modules_only)
        except BaseException:
            self.disable()
            raise

    def disable(self) -> dict[str, str]:
        """Stop before the window closes, or in a forked child; for each source that ended early, why."""
        hooks, self._hooks = self._hooks, None
        if hooks is None:
            return {}
        displaced = fast.calls_stop()
        hooks.remove()
        modules = ("modules",) if self._with_modules else ()
        sources = modules if self._modules_only else ("python", *modules)
        return dict.fromkeys(sources, _DISPLACED) if displaced else {}


class _Monitoring:
    """Python 3.12 and later. Every tool has its own number, so tools do not interfere."""

    def __init__(self) -> None:
        self._tool = free_tool(_TOOL_IDS, cannot="Python calls cannot be recorded")
        _MONITORING.use_tool_id(self._tool, _TOOL_NAME)
        self._only: CodeType | None = None

    def install(self, only: CodeType | None) -> None:
        self._only = only
        events = _MONITORING.events
        callbacks = {
            events.PY_START: fast.on_begin,
            events.PY_RESUME: fast.on_begin,
            events.PY_THROW: fast.on_begin,
            events.PY_RETURN: fast.on_end,
            events.PY_YIELD: fast.on_end,
            events.PY_UNWIND: fast.on_end,
            events.CALL: fast.on_call,
            events.C_RETURN: fast.on_call_end,
            events.C_RAISE: fast.on_call_end,
        }
        for event, callback in callbacks.items():
            _MONITORING.register_callback(self._tool, event, callback)
        if only is None:
            _MONITORING.set_events(self._tool, functools.reduce(int.__or__, callbacks))
        else:
            # Only this function pays, except for unwinding, which has no local events.
            _MONITORING.set_events(self._tool, events.PY_UNWIND)
            _MONITORING.set_local_events(self._tool, only, events.PY_START | events.PY_RETURN)

    def remove(self) -> None:
        _MONITORING.set_events(self._tool, 0)
        if self._only is not None:
            _MONITORING.set_local_events(self._tool, self._only, 0)
        for event in range(_MONITORING.events.C_RAISE.bit_length()):
            _MONITORING.register_callback(self._tool, 1 << event, None)
        _MONITORING.free_tool_id(self._tool)


def free_tool(numbers: Sequence[int], *, cannot: str) -> int:
    """The first of these tool numbers of ``sys.monitoring`` that no tool holds.

    If others hold them all, a `CaptureUnavailableError` begins with `cannot`.
    """
    taken = {number: _MONITORING.get_tool(number) for number in numbers}
    for number, owner in taken.items():
        if owner is None:
            return number
    raise CaptureUnavailableError(
        f"{cannot}: {' and '.join(map(repr, taken.values()))} hold the tool numbers "
        f"{' and '.join(map(str, taken))} of sys.monitoring; stop one of them"
    )


class _ProfileFunction:
    """Python 3.11. The native side calls a thread's earlier profile function, and restores it.

    A thread that native code makes during the window is seen only if it starts a Python function through
    `threading`.
    """

    def __init__(self) -> None:
        self._before: Any = threading.getprofile()

    def install(self, only: CodeType | None) -> None:
        del only  # the native side looks at every call
        threading.setprofile(functools.partial(fast.profile_new_thread, self._before))

    def remove(self) -> None:
        threading.setprofile(self._before)


def _prefixes() -> tuple[str, ...]:
    """The folders of imports, longest first: like torch, we show paths without them."""
    folders = {*site.getsitepackages(), site.getusersitepackages(), *sys.path}
    return tuple(
        sorted((folder.rstrip(os.sep) + os.sep for folder in folders if folder), key=len, reverse=True)
    )


def _module_code() -> CodeType | None:
    """The code that runs when a torch module is called; None without torch."""
    modules = sys.modules.get("torch.nn.modules.module")
    call = None if modules is None else vars(modules.Module)["__call__"]
    code = getattr(call, "__code__", None)
    return code if isinstance(code, CodeType) else None
