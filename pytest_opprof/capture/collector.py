"""The native collector of this process: open it, record a window, take what was recorded."""

from __future__ import annotations

import atexit
import gc
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

from pytest_opprof.capture.counters import CounterChoice, choose
from pytest_opprof.capture.cuda import CUDA
from pytest_opprof.capture.cuda_source import CUDA_SOURCES, MEMORY_CUDA, TENSORS_CUDA, CudaSource
from pytest_opprof.capture.injection import INJECTIONS
from pytest_opprof.capture.memory_source import MALLOC, PYTHON, MemorySource, malloc_problem, memory_source
from pytest_opprof.capture.native import ABSENCE, ffi, lib
from pytest_opprof.capture.native_calls import check
from pytest_opprof.capture.native_session import open_native_session
from pytest_opprof.capture.python_calls import PythonCalls
from pytest_opprof.capture.recording import Recording
from pytest_opprof.capture.sampling import EVERY_OP
from pytest_opprof.capture.torch_ops import OpDetails, TorchOps, imported_torch, torch_ops
from pytest_opprof.capture.window import name_threads
from pytest_opprof.errors import CaptureBusyError, CaptureUnavailableError, UsageError

_MEMORY_SOURCES: Final = frozenset({PYTHON, MALLOC})
SOURCES: Final = (
    frozenset({"ranges", "ops", "ops-itt", "itt", "nvtx", "python", "modules", "cpp"})
    | CUDA_SOURCES
    | _MEMORY_SOURCES
)
DEFAULT_SOURCES: Final = frozenset({"ranges", "ops"})
_INJECTED: Final = {
    "ops-itt": lib.OP_INJECTED_TORCH,
    "itt": lib.OP_INJECTED_ITT,
    "nvtx": lib.OP_INJECTED_NVTX,
}
_MOST_FRAMES: Final = 256  # of a C++ stack; the most that the native side keeps


class Collector:
    """One for the process, as an interpreter and an allocator report to one observer.

    Attributes:
        problems: Per source that was asked for and cannot be captured: the sentence why not.
        lapses: Per source that was not captured to the end of the last window: the sentence why not.
    """

    _instance: Self | None = None

    def __init__(self) -> None:
        """Use `instance`: a second one would share the first one's native state."""
        self.problems: dict[str, str] = {}
        self.lapses: dict[str, str] = {}
        self._sources: frozenset[str] = DEFAULT_SOURCES
        self._torch_ops: TorchOps | None = None
        self._found: dict[bool, TorchOps | str] = {}  # by whether ITT was asked for; or why not
        self._active: tuple[TorchOps, ...] = ()
        self._calls: PythonCalls | None = None
        self._memory: MemorySource | None = None
        self._window_sources: tuple[str, ...] = ()
        self._counters = CounterChoice()
        self._cuda = CudaSource()
        self._is_watching = False
        self._lock = threading.Lock()
        if ABSENCE is None:
            os.register_at_fork(before=lib.op_fork_announced, after_in_child=self._after_fork)
            atexit.register(lib.op_session_close)

    @classmethod
    def instance(cls) -> Self:
        """The collector of this process."""
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance

    @property
    def recording(self) -> bool:
        """Whether a window is open, of those that somebody will read: not that of `watch`."""
        return bool(lib.op_window_is_open()) and not self._is_watching

    @property
    def session_path(self) -> Path | None:
        """The session file that would survive this process; None in anonymous memory, or before `open`."""
        path = ffi.string(lib.op_session_path()).decode()
        return Path(path) if path else None

    @property
    def clock(self) -> str:
        """What ticks: "tsc", "cntvct" or "monotonic"."""
        name: str = ffi.string(lib.op_session_clock()).decode()
        return name

    @property
    def dropped(self) -> int:
        """Events of the open window for which there was no room, so far."""
        count: int = lib.op_window_dropped()
        return count

    def open(self, *, sources: frozenset[str] = DEFAULT_SOURCES) -> None:
        """Make ready what the first window would otherwise pay for: memory, and the torch observer.

        Args:
            sources: Of `SOURCES`. "ranges" are always recorded; "ops" are torch's, by the observer where it
                can be built, else through ITT, which "ops-itt" chooses outright; "itt" and "nvtx" are what
                other libraries emit; "python" are Python and C calls, and "modules" those of torch modules.
                "cpp" is the C++ stack of each op and range.
                "memory-python" and "memory-malloc" are whose memory is recorded, in windows that record any,
                instead of torch's. "cuda" is what CUDA runs on devices, and so is "cuda-if-used", which is no
                problem where nothing has started CUDA.

        Raises:
            UsageError: A source is unknown, or a setting in the environment cannot be meant.
            CollectorError: There is no memory for the pool.
        """
        unknown = sources - SOURCES
        if unknown:
            raise UsageError(f"unknown source {min(unknown)!r}: there are {', '.join(sorted(SOURCES))}")
        with self._lock:
            self._sources = sources
            self.problems.pop("counters", None)  # of an earlier window
            self.problems.pop(MALLOC, None)
            if not lib.op_session_is_open():
                open_native_session()
            if MALLOC in sources and (why_not := malloc_problem()):
                self.problems[MALLOC] = why_not
            self._find_torch()
            self._cuda.find(sources)
            self._tell_of_cuda()

    def start(
        self,
        *,
        record_shapes: bool = False,
        profile_memory: bool = False,
        record_outputs: bool = False,
        record_overloads: bool = False,
        sampling: float = EVERY_OP,
        counters: Sequence[str] = (),
    ) -> None:
        """Open a window: from here on everything is recorded, on all threads.

        Args:
            record_shapes: Also what ops are given.
            profile_memory: Also the memory that is taken and given back: by torch's allocators, else by
                Python's and, of devices, by calls of CUDA where that is recorded.
            record_outputs: Also what ops are given and give back, and which tensors those are.
            record_overloads: Also which overload of each op ran.
            sampling: The share of torch's ops to record, by torch's own sampling of callbacks; all of them
                where they come through ITT.
            counters: Of `COUNTERS`: what is counted in each range and op. Where that is not to be had,
                `problems` says so under "counters".

        Raises:
            UsageError: A counter is unknown, or there are too many.
            CaptureBusyError: A window is open already; it goes on unharmed.
            CollectorError: The native collector failed.
        """
        self.unwatch()
        if self.recording:
            raise CaptureBusyError(
                "a profile is being recorded in this process already; stop it before starting another"
            )
        self.open(sources=self._sources)
        details = OpDetails.asked(shapes=record_shapes, outputs=record_outputs, overloads=record_overloads)
        gc.collect()  # else a collection that was due anyway lands in the window, or does not
        with self._lock:
            self._active = (self._torch_ops,) if self._torch_ops else ()
            self._window_sources = self._sources_seen()
            self._choose_counters(counters)
            check(lib.op_window_unwind(_MOST_FRAMES if "cpp" in self._sources else 0))
            lib.op_window_accept(sum(_INJECTED.get(source, 0) for source in self._window_sources))
            if not any(source.can_sample for source in self._active):
                sampling = EVERY_OP
            lib.op_window_sample(sampling)
            lib.op_window_keep_inputs(record_shapes)
            tensors = profile_memory and self._sees_tensors
            self._cuda.choose(self._sources, with_memory=profile_memory and not tensors)
            check(lib.op_window_start())
            self._window_sources += self._cuda.started()
            self._tell_of_cuda()
            try:
                self._enable_sources(details, sampling=sampling, profile_memory=profile_memory)
            except BaseException:
                self._discard_window()
                raise

    def stop(self, *, most_events: int = 0) -> Recording:
        """Close the window.

        Args:
            most_events: Of more events than these only their sums are kept (`Recording.is_summed`), where
                nothing but ops and ranges was recorded; 0 for no limit.

        Returns:
            What was recorded. It owns its memory, whatever happens to the collector.

        Raises:
            CollectorError: No window is open, or there is no memory for the result.
        """
        with self._lock:
            self._disable_sources()
            self._window_sources = tuple(one for one in self._window_sources if one not in self.lapses)
            result = ffi.new("op_result **")
            check(lib.op_window_sum(most_events, result))
            self._cuda.stopped()
            self._tell_of_cuda()
        return self._recording(result[0])

    def watch(self) -> None:
        """Open a window whose newest events a later process finds, should this one die.

        It has the pool alone, where the oldest events make room, and gives way to any other window. Where
        one is open already, that one serves.

        Raises:
            CollectorError: The native collector failed.
        """
        if lib.op_window_is_open():
            return
        self.open(sources=self._sources)
        with self._lock:
            self._active = (self._torch_ops,) if self._torch_ops else ()
            lib.op_window_sample(EVERY_OP)
            lib.op_window_keep_last(1)
            code = lib.op_window_start()
            lib.op_window_keep_last(0)
            check(code)
            self._is_watching = True
            for source in self._active:
                source.enable(OpDetails(0), sampling=EVERY_OP)

    def unwatch(self) -> None:
        """Close the window of `watch`, if it is open still, and forget it."""
        if self._is_watching:
            self._is_watching = False
            with self._lock:
                self._discard_window()

    def note(self, text: bytes) -> None:
        """Say what this process does, for whoever finds its session file after its death.

        Args:
            text: At most `LONGEST_NOTE` bytes of it are kept; empty for nothing.

        Raises:
            UsageError: A setting in the environment cannot be meant.
            CollectorError: There is no memory for the pool.
        """
        if not lib.op_session_is_open():
            with self._lock:
                open_native_session()
        lib.op_session_note(text, len(text))

    def pause(self, *, paused: bool) -> None:
        """Begin no event from here on, or begin them again; what had begun ends as usual."""
        if paused:
            lib.op_window_pause()
        else:
            lib.op_window_resume()

    def peek(self) -> Recording:
        """What the open window holds so far; recording goes on.

        Raises:
            CollectorError: No window is open, or there is no memory for the result.
        """
        result = ffi.new("op_result **")
        check(lib.op_window_peek(result))
        return self._recording(result[0])

    def step_begin(self, number: int) -> None:
        """Say that a step begins, on the thread that steps.

        Raises:
            CollectorError: No window is open.
        """
        if self._memory is not None:
            self._memory.settle()
        check(lib.op_step_begin(number))

    def step_end(self) -> None:
        """Say that the step ended.

        Raises:
            CollectorError: No window is open.
        """
        check(lib.op_step_end())

    def _find_torch(self) -> None:
        """Torch may be imported at any time, so each window looks again; a way once found stays."""
        torch = imported_torch()
        by_itt = "ops-itt" in self._sources
        self._torch_ops = None
        self.problems.pop("ops", None)
        if torch is None or not (by_itt or "ops" in self._sources):
            return
        if by_itt not in self._found:
            try:
                self._found[by_itt] = torch_ops(torch, by_itt=by_itt)
            except CaptureUnavailableError as error:
                self._found[by_itt] = str(error)
        found = self._found[by_itt]
        if isinstance(found, str):
            self.problems["ops"] = found
        else:
            self._torch_ops = found

    def _tell_of_cuda(self) -> None:
        told = {CUDA: self._cuda.problem, MEMORY_CUDA: self._cuda.memory_problem}
        for source, problem in told.items():
            self.problems.pop(source, None)
            if problem is not None:
                self.problems[source] = problem

    def _sources_seen(self) -> tuple[str, ...]:
        """What is recorded without more ado: ranges, torch's ops, what other libraries emit, stacks."""
        asked = [injection for injection in INJECTIONS if injection.name.lower() in self._sources]
        return (
            "ranges",
            *(source.name for source in self._active),
            *(injection.name.lower() for injection in asked if injection.is_armed),
            *({"cpp"} & self._sources),
        )

    def _enable_sources(self, details: OpDetails, *, sampling: float, profile_memory: bool) -> None:
        tensors = profile_memory and self._sees_tensors
        if tensors:
            details |= OpDetails.MEMORY
            if OpDetails.INPUTS in details:
                details |= OpDetails.IDENTITIES  # which memory is which input's
        if self._counters.counted or "cpp" in self._sources:
            details |= OpDetails.CLOSELY
        if "modules" in self._sources:
            details |= OpDetails.MODULES
        for source in self._active:
            source.enable(details, sampling=sampling)
        if tensors:
            of_devices = (TENSORS_CUDA,) if CUDA in self._window_sources else ()
            self._window_sources += ("memory", *of_devices)
        self._window_sources += self._enable_calls()
        if profile_memory and not tensors:  # last, so as not to see what we take for ourselves
            self._enable_memory()

    def _choose_counters(self, names: Sequence[str]) -> None:
        self.problems.pop("counters", None)
        self._counters = choose(names)
        if self._counters.problem is not None:
            self.problems["counters"] = self._counters.problem

    def _enable_calls(self) -> tuple[str, ...]:
        """Record Python calls, where they were asked for and can be had; what of them is recorded."""
        asked = tuple(source for source in ("python", "modules") if source in self._sources)
        for source in ("python", "modules"):
            self.problems.pop(source, None)
        if not asked:
            return ()
        calls = PythonCalls(modules_only="python" not in asked, with_modules="modules" in asked)
        try:
            calls.enable()
        except CaptureUnavailableError as error:
            self.problems.update(dict.fromkeys(asked, str(error)))
            return ()
        self._calls = calls
        return asked

    @property
    def _sees_tensors(self) -> bool:
        """Whether a window's memory is that of tensors: one source, so that no block is counted twice."""
        is_asked_otherwise = not (self._sources - self.problems.keys()).isdisjoint(_MEMORY_SOURCES)
        return not is_asked_otherwise and any(source.sees_memory for source in self._active)

    def _enable_memory(self) -> None:
        memory = memory_source(self._sources - self.problems.keys())
        self._window_sources += (memory.name,)
        memory.enable()
        self._memory = memory

    def _disable_sources(self) -> None:
        memory, self._memory = self._memory, None
        if memory is not None:
            memory.disable()
        calls, self._calls = self._calls, None
        self.lapses = calls.disable() if calls is not None else {}
        active, self._active = self._active, ()
        for source in active:
            source.disable()

    def _recording(self, result: Any) -> Recording:
        """What a native result holds, with what only Python knows of it."""
        name_threads(result)
        return Recording(result, sources=self._window_sources)

    def _discard_window(self) -> None:
        self._disable_sources()
        result = ffi.new("op_result **")
        if lib.op_window_stop(result) == lib.OP_OK:
            lib.op_result_free(result[0])

    def _after_fork(self) -> None:
        """A child records nothing of its parent's window, and torch is told so there."""
        self._lock = threading.Lock()
        self._is_watching = False
        self._disable_sources()
