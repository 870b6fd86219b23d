"""The profiler's side of the collector: opens and closes windows, and keeps their recordings."""

from __future__ import annotations

import gc
import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from os import getpid  # code under test may replace that of `os`
from typing import Protocol
from uuid import uuid4

from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.cuda import CUDA
from pytest_opprof.capture.ranges import record_function
from pytest_opprof.capture.recording import Recording
from pytest_opprof.capture.sources import EVERY_OP
from pytest_opprof.capture.tensor_roles import TensorRoles, tensor_roles
from pytest_opprof.capture.torch_ops import imported_torch
from pytest_opprof.errors import CollectorError, UsageError
from pytest_opprof.profiler import enabled
from pytest_opprof.profiler.cycle import Cycle, TraceMetadata
from pytest_opprof.profiler.execution_trace_observer import ExecutionTraceObserver


class WindowObserver(Protocol):
    """Another observer of the same windows, such as torch's ``ExecutionTraceObserver``."""

    def start(self) -> None:
        """A window opens."""

    def stop(self) -> None:
        """A window closed."""

    def cleanup(self) -> None:
        """The profiler is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderOptions:
    """What a profiler records, and what it keeps."""

    sources: frozenset[str]  # the collector's sources
    record_shapes: bool  # record ops' inputs; FLOPs need them too
    profile_memory: bool = False  # record allocations and releases
    with_flops: bool = False
    keep_cycles: int | None  # how many of the latest cycles stay; None for all
    observer: WindowObserver | None  # called when windows open and close
    collections: bool = False  # record Python's garbage collections as ranges
    overloads: bool = False
    sampling: float = EVERY_OP  # the share of torch's ops to record
    counters: tuple[str, ...] = ()  # the counters to read in each range and op
    tells: bool = True  # warn of requests that cannot be recorded
    keep_events: int = 0  # a cycle with more events keeps only its sums; 0 for no limit

    @property
    def has_shapes(self) -> bool:
        """Whether inputs are recorded, from which FLOPs are computed."""
        return self.record_shapes or self.with_flops

    @property
    def settings(self) -> dict[str, object]:
        """The recording's settings, as torch's traces write them."""
        given = {
            "record_shapes": self.has_shapes,
            "profile_memory": self.profile_memory,
            "with_flops": self.with_flops,
            "with_stack": "python" in self.sources,
            "with_modules": "modules" in self.sources,
            "with_cpp_stack": "cpp" in self.sources,
        }
        return {name: 1 for name, is_on in given.items() if is_on}


def sources_of(sources: frozenset[str], *, stacks: frozenset[str], with_modules: bool) -> frozenset[str]:
    """The collector's sources of ops and of the calls around them."""
    return sources | stacks | ({"modules"} if with_modules else set())


class CycleRecorder:
    """Makes the moves of a `Stepper` on this process's collector."""

    def __init__(
        self,
        options: RecorderOptions,
        *,
        on_cycle: Callable[[], None],
        trace_id_callback: Callable[[], str] | None,
    ) -> None:
        self._options = options
        self._on_cycle = on_cycle
        self._collector = Collector.instance()
        self._process: int | None = None
        self._undelivered: Cycle | None = None
        self._leave_step: Callable[..., None] | None = None
        self._collection: record_function | None = None
        self._told: set[str] = set()
        self._losses: list[str] = []
        self.metadata = TraceMetadata()  # for the traces of all cycles
        self.cycles: deque[Cycle] = deque(maxlen=options.keep_cycles)  # the delivered cycles, oldest first
        self.latest: Cycle | None = None  # the last recorded cycle, delivered or not
        self.trace_id: str | None = None  # the name of the cycle being recorded, or of the last one
        self.trace_id_callback = trace_id_callback  # returns the next name

    @property
    def is_open(self) -> bool:
        """Whether a window of this process is open; a forked child does not have its parent's."""
        return self._process == getpid()

    def prepare(self, options: RecorderOptions | None = None) -> None:
        """Open the collector, and name the next cycle, which is recorded with other options if given."""
        self._options = options or self._options
        self._open_collector()
        self.trace_id = self.trace_id_callback() if self.trace_id_callback else uuid4().hex.upper()

    def start(self) -> None:
        """Open the window; a `CaptureBusyError` if another one is open, which is unaffected."""
        self._open_collector()
        observer = self._options.observer
        traces = isinstance(observer, ExecutionTraceObserver) and observer.is_registered
        if traces and self._options.sampling != EVERY_OP:
            raise UsageError("an execution trace needs every op; leave out `sampling`, or the observer")
        self._collector.start(
            record_shapes=self._options.has_shapes,
            profile_memory=self._options.profile_memory,
            record_outputs=traces,
            record_overloads=self._options.overloads,
            sampling=self._options.sampling,
            counters=self._options.counters,
        )
        self._process = getpid()
        if self._options.collections:
            gc.callbacks.append(self._note_collection)
        try:
            enabled.run_on_profiler_start()
            if isinstance(observer, ExecutionTraceObserver):
                observer.join_window()
            elif observer is not None:
                observer.start()
            self._tell("counters", "counters: {}")
            self._tell(CUDA, "CUDA is not recorded: {}")
        except BaseException:
            self.stop()  # nobody else will, if a hook, an observer or a warning raised
            raise

    def stop(self) -> None:
        """Close the window, if it is open."""
        if not self.is_open:
            return
        self._process = None
        if self._note_collection in gc.callbacks:
            gc.callbacks.remove(self._note_collection)
        observer = self._options.observer
        try:
            enabled.run_on_profiler_stop()
        finally:
            recording = self._collector.stop(most_events=self._options.keep_events)
            if isinstance(observer, ExecutionTraceObserver):
                observer.take(recording)
            self._keep(recording)
        if observer is not None and not isinstance(observer, ExecutionTraceObserver):
            observer.stop()

    def _keep(self, recording: Recording) -> None:
        self._losses = self._untold(CUDA, "CUDA was not recorded, or only in part: {}")
        if self._options.tells:
            self._losses += set(self._collector.lapses.values())
        if recording.stats.uncounted_threads:
            self._losses.append(
                f"counters: {recording.stats.uncounted_threads} threads could not open their counters, or "
                "the program closed them: raise the limit of open files (ulimit -n), and let the program "
                "close only descriptors of its own"
            )
        self.latest = self._undelivered = Cycle(
            recording,
            trace_id=self.trace_id or "",
            metadata=self.metadata,
            settings=self._options.settings,
            profile_memory=self._options.profile_memory,
            with_flops=self._options.with_flops,
        )
        self.latest.roles = self._roles()  # after the recording is kept: an interrupt may end the walk

    def _roles(self) -> TensorRoles | None:
        """The roles of living tensors, if a memory timeline can be made."""
        torch = imported_torch()
        settings = self._options.settings
        wanted = self._options.profile_memory and {"record_shapes", "with_stack"} <= settings.keys()
        return tensor_roles(torch) if wanted and torch is not None else None

    def deliver(self) -> None:
        """Add the recorded cycle to `cycles`, tell the profiler, and warn of what the cycle lacks.

        The warnings come last, because under `-W error` they raise.
        """
        cycle, self._undelivered = self._undelivered, None
        losses, self._losses = self._losses, []
        if cycle is not None:
            self.cycles.append(cycle)
            self._on_cycle()
        for loss in losses:
            warnings.warn(loss, stacklevel=6)

    def begin_step(self, number: int) -> None:
        """Begin a step and the range that shows it.

        The range and its bound methods are made first, because allocations within a step count as its own.
        Under a tracer, Python 3.11 makes a new bound method for each call of a native one.
        """
        step_range = record_function(f"ProfilerStep#{number}")
        enter, leave = step_range.__enter__, step_range.__exit__
        self._collector.step_begin(number)
        enter()
        self._leave_step = leave

    def end_step(self) -> None:
        """End the step, if one was begun."""
        if self._leave_step is None:
            return
        leave, self._leave_step = self._leave_step, None
        leave(None, None, None)
        try:
            self._collector.step_end()
        except CollectorError:
            if self.is_open:  # checked only after step_end(): the check allocates memory
                raise

    def _note_collection(self, phase: str, _info: object) -> None:
        if phase == "start":
            self._collection = record_function("Python GC")
            self._collection.__enter__()
        elif self._collection is not None:
            collection, self._collection = self._collection, None
            collection.__exit__(None, None, None)

    def _open_collector(self) -> None:
        # Again before each window: torch may have been imported since, or another profiler had other sources.
        self._collector.open(sources=self._options.sources)
        for source in sorted(self._options.sources - {CUDA}):
            self._tell(source, f"{source} are not recorded: {{}}")

    def _tell(self, part: str, sentence: str) -> None:
        for problem in self._untold(part, sentence):
            warnings.warn(problem, stacklevel=7)

    def _untold(self, part: str, sentence: str) -> list[str]:
        """The sentence that the collector cannot record a part, the first time."""
        problem = self._collector.problems.get(part)
        if problem is None or part in self._told or not self._options.tells:
            return []
        self._told.add(part)
        return [sentence.format(problem)]
