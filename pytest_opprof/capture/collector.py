"""The native collector of this process: open it, record a window, take what was recorded."""

from __future__ import annotations

import atexit
import gc
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

from pytest_opprof.capture.call_sites import CALLERS, SITES, library_folders
from pytest_opprof.capture.counters import CounterChoice, choose
from pytest_opprof.capture.cuda import CUDA, MEMORY_CUDA, TENSORS_CUDA, CudaSource
from pytest_opprof.capture.injection import INJECTIONS
from pytest_opprof.capture.memory_source import MALLOC, MallocMemory, PythonMemory, malloc_problem
from pytest_opprof.capture.native import ABSENCE, fast, ffi, lib
from pytest_opprof.capture.native_calls import check, text_at
from pytest_opprof.capture.python_calls import PythonCalls
from pytest_opprof.capture.recording import Recording
from pytest_opprof.capture.session_files import open_native_session
from pytest_opprof.capture.sources import DEFAULT_SOURCES, EVERY_OP, INJECTED, MEMORY_SOURCES, SOURCES
from pytest_opprof.capture.torch_ops import OF_WORK, RETAINED, WORK, OpDetails, TorchSource, torch_is_awaited
from pytest_opprof.capture.window import name_threads
from pytest_opprof.errors import CaptureBusyError, CaptureUnavailableError, UsageError

_MOST_FRAMES: Final = 256  # of a C++ stack, the native side's limit


class Collector:
    """The one collector of a process: interpreters and allocators report to a single observer."""

    _instance: Self | None = None

    def __init__(self) -> None:
        """Use `instance` instead: a second collector would share the first one's native state."""
        # for each requested source that cannot be captured, a sentence why not
        self.problems: dict[str, str] = {}
        # for each source that stopped before the last window ended, a sentence why
        self.lapses: dict[str, str] = {}
        self._sources: frozenset[str] = DEFAULT_SOURCES
        self._torch = TorchSource()
        self._with_memory = False
        self._calls: PythonCalls | None = None
        self._memory: PythonMemory | MallocMemory | None = None
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
        """Whether a window other than that of `watch` is open."""
        return bool(lib.op_window_is_open()) and not self._is_watching

    @property
    def session_path(self) -> Path | None:
        """The session file, which survives a crash; None in anonymous memory, or before `open`."""
        path = ffi.string(lib.op_session_path()).decode()
        return Path(path) if path else None

    @property
    def clock(self) -> str:
        """The clock in use: "tsc", "cntvct" or "monotonic"."""
        return text_at(lib.op_session_clock())

    @property
    def dropped(self) -> int:
        """Events that did not fit into the open window so far."""
        return int(lib.op_window_dropped())

    def open(self, *, sources: frozenset[str] = DEFAULT_SOURCES) -> None:
        """Prepare memory and the torch observer, so that the first window does not pay for them.

        Args:
            sources: From `SOURCES`. "ranges" are always recorded. "ops" are torch's, from the observer if it
                can be built, else through ITT, which "ops-itt" always uses. "itt" and "nvtx" are what other
                libraries emit. "python" means Python and C calls, "modules" calls of torch modules, "cpp" the
                C++ stack of each op and range. "memory-python" or "memory-malloc" replaces torch's memory in
                windows that record memory. "cuda" is what CUDA runs on devices; "cuda-if-used" is the same,
                but no problem if nothing has started CUDA. "sites" are the user's lines that called ops
                ("python" has them already), and "callers" the lines that called those functions. "work" is
                the bytes given to each torch op, its FLOPs by formula, and its nodes of autograd's graph.

        Raises:
            UsageError: A source is unknown, or a setting in the environment is invalid.
            CollectorError: There is no memory for the pool.
        """
        if unknown := sources - SOURCES:
            raise UsageError(f"unknown source {min(unknown)!r}: there are {', '.join(sorted(SOURCES))}")
        with self._lock:
            self._sources = sources
            self._counters = CounterChoice()
            self.problems.pop(MALLOC, None)
            if not lib.op_session_is_open():
                open_native_session()
            if MALLOC in sources and (why_not := malloc_problem()):
                self.problems[MALLOC] = why_not
            self._torch.find(sources)
            self._cuda.find(sources)
            self._tell_of_others()

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
        """Open a window: record all threads from here on.

        Args:
            record_shapes: Also record the inputs of ops.
            profile_memory: Also record memory taken and given back: by torch's allocators, or else by
                Python's (or malloc) and, if CUDA is recorded, by CUDA calls.
            record_outputs: Also record inputs, outputs, and which tensors they are.
            record_overloads: Also record which overload of each op ran.
            sampling: The share of torch's ops to record, by torch's own sampling of callbacks; ITT gives all.
            counters: From `COUNTERS`: what to count in each range and op. If that fails,
                `problems["counters"]` says why.

        Raises:
            UsageError: A counter is unknown, or there are too many.
            CaptureBusyError: A window is already open; it continues unharmed.
            CollectorError: The native collector failed.
        """
        self.unwatch()
        if self.recording:
            raise CaptureBusyError(
                "a profile is being recorded in this process already; stop it before starting another"
            )
        self.open(sources=self._sources)
        details = OpDetails.asked(shapes=record_shapes, outputs=record_outputs, overloads=record_overloads)
        gc.collect()  # otherwise a collection that is due may fall into the window, or not
        with self._lock:
            self._torch.choose()
            self._window_sources = self._sources_seen()
            self._torch.sampling = sampling if self._torch.sees_details or torch_is_awaited() else EVERY_OP
            of_calls = profile_memory and not self._sees_tensors
            self._prepare(self._sources, inputs=record_shapes, counters=counters, with_memory=of_calls)
            check(lib.op_window_start())
            self._window_sources += self._cuda.started()
            self._tell_of_others()
            try:
                self._with_memory = profile_memory
                self._torch.details = self._closely(details)
                self._enable_sources()
            except BaseException:
                self._discard_window()
                raise

    def join_torch(self) -> None:
        """After torch's import, record its ops from here on, and its memory instead of Python's."""
        with self._lock:
            if not self.recording or self._torch.active is not None:
                return
            lib.op_window_pause()
            try:
                self._torch.find(self._sources)
                self._tell_of_others()
                self._torch.choose()
                self._window_sources += self._torch.names
                if self._memory is not None and self._sees_tensors:
                    self._memory.disable()
                    self._memory = None
                self._enable_torch()
            finally:
                lib.op_window_resume()

    def stop(self, *, most_events: int = 0) -> Recording:
        """Close the window; the recording owns its memory, whatever happens to the collector.

        If there are more events than `most_events`, and only of ops and ranges, it has only their sums
        (`Recording.is_summed`); 0 for no limit.
        """
        with self._lock:
            self._disable_sources()
            self._window_sources = tuple(one for one in self._window_sources if one not in self.lapses)
            result = ffi.new("op_result **")
            check(lib.op_window_sum(most_events, result))
            self._cuda.stopped()
            self._tell_of_others()
        return self._recording(result[0])

    def watch(self) -> None:
        """Open a window whose newest events another process can recover if this one dies.

        It uses only the pool, where new events replace the oldest, and gives way to any other window. If a
        window is open already, this does nothing.
        """
        if lib.op_window_is_open():
            return
        self.open(sources=self._sources)
        with self._lock:
            self._torch.choose()
            self._torch.details, self._torch.sampling = OpDetails(0), EVERY_OP
            self._window_sources = ("ranges", *self._torch.names)
            self._prepare(frozenset(self._torch.names))
            lib.op_window_keep_last(1)
            code = lib.op_window_start()
            lib.op_window_keep_last(0)
            check(code)
            self._is_watching = True
            self._torch.enable()

    def unwatch(self) -> None:
        """Close and discard the window of `watch`, if it is still open."""
        if self._is_watching:
            self._is_watching = False
            with self._lock:
                self._discard_window()

    def note(self, text: bytes) -> None:
        """Note in the session file what this process does, in case it dies; cut to `LONGEST_NOTE` bytes."""
        if not lib.op_session_is_open():
            with self._lock:
                open_native_session()
        lib.op_session_note(text, len(text))

    def pause(self, *, paused: bool) -> None:
        """Record no new events from here on, or record them again; open events end as usual."""
        (lib.op_window_pause if paused else lib.op_window_resume)()

    def peek(self) -> Recording:
        """What the open window holds so far; it continues to record."""
        result = ffi.new("op_result **")
        check(lib.op_window_peek(result))
        return self._recording(result[0])

    def step_begin(self, number: int) -> None:
        """Mark the beginning of a step, on the thread that steps."""
        if self._memory is not None:
            self._memory.settle()
        check(lib.op_step_begin(number))

    def step_end(self) -> None:
        """Mark the end of the step."""
        check(lib.op_step_end())

    def _prepare(
        self,
        sources: frozenset[str],
        *,
        inputs: bool = False,
        counters: Sequence[str] = (),
        with_memory: bool = False,
    ) -> None:
        """Choose all that a window records, or it records what the one before it did."""
        self._counters = choose(counters)
        check(lib.op_window_unwind(_MOST_FRAMES if "cpp" in sources else 0))
        lib.op_window_accept(sum(INJECTED.get(source, 0) for source in self._window_sources))
        lib.op_window_sample(self._torch.sampling)
        lib.op_window_keep_inputs(inputs)
        self._cuda.choose(sources, with_memory=with_memory)

    def _tell_of_others(self) -> None:
        told = {
            "ops": self._torch.problem,
            "counters": self._counters.problem,
            CUDA: self._cuda.problem,
            MEMORY_CUDA: self._cuda.memory_problem,
        }
        known = {**self.problems, **told}
        self.problems = {source: problem for source, problem in known.items() if problem is not None}

    def _sources_seen(self) -> tuple[str, ...]:
        """Sources that need no switching on: ranges, torch's ops, other libraries' ranges, C++ stacks."""
        asked = [injection for injection in INJECTIONS if injection.name.lower() in self._sources]
        return (
            "ranges",
            *self._torch.names,
            *(injection.name.lower() for injection in asked if injection.is_armed),
            *({"cpp"} & self._sources),
        )

    def _closely(self, details: OpDetails) -> OpDetails:
        if self._counters.counted or "cpp" in self._sources:
            details |= OpDetails.CLOSELY
        return details | OpDetails.MODULES if "modules" in self._sources else details

    def _enable_sources(self) -> None:
        self._enable_torch()
        self._window_sources += self._enable_calls()
        if SITES in self._sources and "python" not in self._window_sources:
            fast.sites_start(library_folders(), CALLERS in self._sources)
        if self._with_memory and not self._sees_tensors:  # last, to leave out our own memory
            memory = MallocMemory() if MALLOC in self._sources - self.problems.keys() else PythonMemory()
            self._window_sources += (memory.name,)
            memory.enable()
            self._memory = memory

    def _enable_torch(self) -> None:
        if WORK in self._sources and self._torch.sees_details:
            self._torch.details |= OpDetails.WORK
            self._window_sources += OF_WORK
            if not self._with_memory:
                self._torch.details |= OpDetails.RETAINED
                self._window_sources += (RETAINED,)
        if self._with_memory and self._sees_tensors:
            self._torch.details |= OpDetails.MEMORY
            if OpDetails.INPUTS in self._torch.details:
                self._torch.details |= OpDetails.IDENTITIES  # to match memory with inputs
            of_devices = (TENSORS_CUDA,) if CUDA in self._window_sources else ()
            self._window_sources += ("memory", RETAINED, *of_devices)
        self._torch.enable()

    def _enable_calls(self) -> tuple[str, ...]:
        """Record Python calls if requested and possible; the sources that are recorded."""
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
        """Whether a window records torch's memory: only one source does, so that no block counts twice."""
        is_asked_otherwise = not (self._sources - self.problems.keys()).isdisjoint(MEMORY_SOURCES)
        return not is_asked_otherwise and self._torch.sees_details

    def _disable_sources(self) -> None:
        memory, calls = self._memory, self._calls
        self._memory = self._calls = None
        self.lapses = memory.disable() if memory is not None else {}
        self.lapses |= calls.disable() if calls is not None else {}
        fast.sites_stop()
        self._torch.disable()

    def _recording(self, result: Any) -> Recording:
        """Wrap a native result, with the thread names that only Python knows."""
        name_threads(result)
        return Recording(result, sources=self._window_sources)

    def _discard_window(self) -> None:
        self._disable_sources()
        result = ffi.new("op_result **")
        if lib.op_window_stop(result) == lib.OP_OK:
            lib.op_result_free(result[0])

    def _after_fork(self) -> None:
        """Stop recording in the child, in torch too: the window is its parent's."""
        self._lock = threading.Lock()
        self._is_watching = False
        self._disable_sources()
