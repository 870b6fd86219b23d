"""Torch's ops as a source of events: the compiled observer, or ITT ranges if nothing can be compiled."""

from __future__ import annotations

import ctypes
import enum
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, Self, TypeAlias

from pytest_opprof.capture import injection
from pytest_opprof.errors import CaptureUnavailableError

WORK: Final = "work"
OF_WORK: Final = (WORK, "flops")  # what a window then records of ops
RETAINED: Final = "retained"  # and of steps, from torch's memory


class OpDetails(enum.IntFlag):
    """What to record about torch's ops besides that they ran (native/src/core/event.h, op_observe)."""

    INPUTS = 1
    MEMORY = 2
    IDENTITIES = 4
    OUTPUTS = 8
    OVERLOADS = 16
    CLOSELY = 32  # counters, or C++ stacks
    MODULES = 64
    WORK = 128  # bytes given, and nodes added to autograd's graph
    RETAINED = 256  # of memory, only what steps leave in use

    @classmethod
    def asked(cls, *, shapes: bool, outputs: bool, overloads: bool) -> Self:
        """What a window's options ask for; `outputs` includes inputs, and which tensors they are."""
        asked = cls.INPUTS if shapes else cls(0)
        if outputs:
            asked |= cls.INPUTS | cls.IDENTITIES | cls.OUTPUTS
        return asked | cls.OVERLOADS if overloads else asked


class ObserverOps:
    """RecordFunction callbacks in native code: all threads, names, scopes, shapes, sequence numbers.

    Attributes:
        name: The source's name in saved runs.
        sees_details: It can also record ops' inputs and torch's memory, and sample the ops.
    """

    name = "ops"
    sees_details = True

    def __init__(self, torch: Any) -> None:
        """Load the observer for this torch, compiling it the first time."""
        from pytest_opprof.capture.observer_build import load  # noqa: PLC0415  # of no use without torch

        self._torch = torch
        self._library = load(torch)
        for name in ("enable", "disable", "adopt_thread", "step_aside"):
            getattr(self._library, f"opprof_observer_{name}").restype = None
        self._library.opprof_observer_enable.argtypes = [ctypes.c_uint32, ctypes.c_double]
        self._hooks = _ProfilerHooks(torch.autograd.profiler, self._library)

    def enable(self, details: OpDetails, *, sampling: float) -> None:
        """The window opened: see ops on all threads."""
        self._library.opprof_observer_enable(int(details), sampling)
        self._library.opprof_observer_adopt_thread()
        self._hooks.install()

    def disable(self) -> None:
        """The window is about to close; also after a fork, in the child."""
        self._hooks.remove()
        self._library.opprof_observer_disable()


class _ProfilerHooks:
    """Sets torch's own flag and hooks as our windows need them.

    The flag makes torch.compile emit its ranges, as under torch.profiler. torch.autograd.profiler calls the
    hooks just before its own profiler takes a thread, which ours then leaves, and just after. The hooks stay
    between windows, as our state stays on a thread until that thread records again.
    """

    def __init__(self, profiler: Any, library: ctypes.PyDLL) -> None:
        self._profiler = profiler
        self._library = library
        self._installed = False
        self._window_is_open = False
        self._torch_is_profiling = False

    def install(self) -> None:
        self._window_is_open = True
        self._torch_is_profiling = bool(self._profiler._is_profiler_enabled)  # noqa: SLF001
        self._set_flag(on=True)
        if not self._installed:
            self._installed = True
            self._wrap_hooks()

    def remove(self) -> None:
        if self._window_is_open:
            self._window_is_open = False
            self._set_flag(on=self._torch_is_profiling)

    def _set_flag(self, *, on: bool) -> None:
        self._profiler._set_is_profiler_enabled(on)  # noqa: SLF001

    def _wrap_hooks(self) -> None:
        profiler = self._profiler
        starts, stops = profiler._run_on_profiler_start, profiler._run_on_profiler_stop  # noqa: SLF001

        def on_start() -> None:
            self._library.opprof_observer_step_aside()
            self._torch_is_profiling = True
            starts()

        def on_stop() -> None:
            stops()
            self._torch_is_profiling = False
            if self._window_is_open:
                self._library.opprof_observer_adopt_thread()
                self._set_flag(on=True)

        profiler._run_on_profiler_start = on_start  # noqa: SLF001
        profiler._run_on_profiler_stop = on_stop  # noqa: SLF001


class IttOps:
    """Torch's own ITT ranges, collected by us: names only, of this thread and autograd's."""

    name = "ops-itt"
    sees_details = False

    def __init__(self, torch: Any) -> None:
        """Check that torch's ITT will reach our collector; a `CaptureUnavailableError` if it will not."""
        if not torch.profiler.itt.is_available():
            raise CaptureUnavailableError(
                f"torch {torch.__version__} cannot report its ops through ITT: it was built without ITT"
            )
        if not injection.ITT.is_armed:
            raise CaptureUnavailableError(
                "torch's ITT ranges cannot be collected: torch was imported before the collector was armed; "
                f"export INTEL_LIBITTNOTIFY64={injection.library_path()} before pytest starts"
            )
        self._torch = torch
        self._emitter: Any = None

    def enable(self, details: OpDetails, *, sampling: float) -> None:
        """The window opened: see the ops of this thread and of autograd's."""
        del details, sampling  # torch's ITT ranges have no details and cannot be sampled
        self._emitter = self._torch.autograd.profiler.emit_itt()
        self._emitter.__enter__()

    def disable(self) -> None:
        """The window is about to close; also after a fork, in the child."""
        emitter, self._emitter = self._emitter, None
        if emitter is not None:
            emitter.__exit__(None, None, None)


TorchOps: TypeAlias = ObserverOps | IttOps


def imported_torch() -> Any | None:
    """The torch that this process has imported, whole, or None; we never import it first."""
    torch = sys.modules.get("torch")
    is_torch = isinstance(getattr(torch, "__version__", None), str)  # a stub of it has other things there
    return torch if is_torch and hasattr(torch, "version") and hasattr(torch, "autograd") else None


def torch_ops(torch: Any, *, by_itt: bool) -> TorchOps | str:
    """The best way to see this torch's ops, or the one through ITT; else why there is none, for each way."""
    reasons = []
    ways: tuple[type[TorchOps], ...] = (IttOps,) if by_itt else (ObserverOps, IttOps)
    for way in ways:
        try:
            return way(torch)
        except CaptureUnavailableError as error:
            reasons.append(str(error))
    return "; ".join(reasons)


class TorchSource:
    """Looks for torch before each window, as it may be imported at any time; a way once found is kept."""

    def __init__(self) -> None:
        self.problem: str | None = None  # why requested ops of torch cannot be recorded; None if they can
        # the way that is switched on; None without torch, or without a request
        self.active: TorchOps | None = None
        self.details = OpDetails(0)  # what the open window records of each op
        self.sampling = 1.0  # the share of the ops that it records
        self._ops: TorchOps | None = None
        self._found: dict[bool, TorchOps | str] = {}  # by whether ITT was requested; a text says why not

    def find(self, sources: frozenset[str]) -> None:
        """Look for torch, and for a way to see its ops."""
        torch = imported_torch()
        by_itt = "ops-itt" in sources
        self._ops = self.problem = None
        if torch is None or not (by_itt or "ops" in sources):
            return
        if by_itt not in self._found:
            self._found[by_itt] = torch_ops(torch, by_itt=by_itt)
        found = self._found[by_itt]
        if isinstance(found, str):
            self.problem = found
        else:
            self._ops = found

    def choose(self) -> None:
        """Use the way that was found for the window that opens."""
        self.active = self._ops

    @property
    def sees_details(self) -> bool:
        """Whether the active way sees more than names: ops' inputs, and torch's memory."""
        return self.active is not None and self.active.sees_details

    @property
    def names(self) -> tuple[str, ...]:
        """The names in saved runs of the active way."""
        return () if self.active is None else (self.active.name,)

    def enable(self) -> None:
        """The window opened: see ops."""
        if self.active is not None:
            self.active.enable(self.details, sampling=self.sampling)

    def disable(self) -> None:
        """The window is about to close; also after a fork, in the child."""
        active, self.active = self.active, None
        if active is not None:
            active.disable()


@contextmanager
def on_torch_import(then: Callable[[], None]) -> Iterator[None]:
    """Call ``then`` right after the first import of torch, before the importing line continues."""
    finder = _Finder(then)
    if imported_torch() is None:
        sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        finder.leave()


def torch_is_awaited() -> bool:
    """Whether a window waits for torch's import."""
    return any(isinstance(finder, _Finder) for finder in sys.meta_path)


class _Finder:
    """Finds torch as usual, and makes its loader call `then` when it is done."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def leave(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        del path, target
        if name != "torch":
            return None
        self.leave()
        spec = importlib.util.find_spec(name)
        loader: Any = spec.loader if spec is not None else None
        if loader is None:
            return spec
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self._then()

        loader.exec_module = exec_module
        return spec
