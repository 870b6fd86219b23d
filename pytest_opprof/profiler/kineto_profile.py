"""A profiler that is started and stopped by hand, the base of every profiler here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Final, Self

from pytest_opprof.capture import cuda
from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.sources import (
    DEFAULT_SOURCES,
    EVERY_OP,
    WithStack,
    parse_sampling,
    stack_sources,
)
from pytest_opprof.errors import UsageError
from pytest_opprof.events.columns import Compat
from pytest_opprof.events.event_list import EventList
from pytest_opprof.events.function_event_avg import FunctionEventAvg
from pytest_opprof.events.key_averages import Grouping, KeyAverages
from pytest_opprof.events.kineto_results import KinetoResults
from pytest_opprof.profiler.activities import (
    ProfilerActivity,
    activity_types,
    cuda_source,
    device_in,
    parse_activities,
    toggled_here,
    warn_of_missing,
)
from pytest_opprof.profiler.cycle import Cycle, Exported
from pytest_opprof.profiler.experimental import read_config, settings_of
from pytest_opprof.profiler.handlers import warn_of_python_export
from pytest_opprof.profiler.recorder import CycleRecorder, RecorderOptions, WindowObserver, sources_of

_RANGES_ONLY: Final = frozenset({"ranges"})


class KinetoProfile(Exported):
    """Record ops between `start` and `stop`, with the arguments of torch's ``_KinetoProfile``.

    Args:
        activities: What to record (default: the CPU, and CUDA if torch or this process has it). A warning
            names activities that are not available.
        record_shapes: Record the shapes, types and numbers of ops' inputs.
        profile_memory: Record each allocation and release of torch's allocators; without torch, those of
            Python's own allocator and, if CUDA is recorded, the device memory that CUDA calls allocate.
        with_stack: Record Python and C calls on all threads: each call is an event, and each event has the
            stack of calls around it. ``"python"`` is the same as True; ``"cpp"`` records the C++ stack of
            each op and range instead, and ``"all"`` records both.
        with_flops: Count the floating point operations of ops that have a formula; records shapes too.
        with_modules: Record the calls of torch modules, as ``nn.Module: Linear_0``; Python stacks always
            include them.
        experimental_config: An `ExperimentalConfig`, or torch's; a warning names settings without effect.
        execution_trace_observer: Writes an execution trace of the recording: ours, which also records the
            inputs and outputs of ops, or torch's.
        acc_events: `events` and `key_averages` cover all kept cycles, not only the last.
        custom_trace_id_callback: Returns each cycle's name.
        post_processing_timeout_s: Accepted, but has no effect: nothing takes long.
        keep_cycles: How many of the latest cycles stay in memory; None keeps all.
        sampling: The share of torch's ops to record, from one in a million (1e-6) to all of them (1): torch's
            own sampling of callbacks selects each op independently. All ranges are recorded.

    Raises:
        UsageError: `sampling`, `with_stack`, `keep_cycles` or a performance event is invalid.
        AssertionError: No activity is left. Torch raises the same.
        ValueError: An activity is given twice, or the timeout is negative.
        TypeError: `experimental_config` is neither ours nor torch's.
    """

    def __init__(
        self,
        *,
        activities: Iterable[object] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: WithStack = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: object | None = None,
        execution_trace_observer: WindowObserver | None = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        keep_cycles: int | None = None,
        sampling: float = EVERY_OP,
    ) -> None:
        if keep_cycles is not None and keep_cycles < 1:
            raise UsageError(f"keep_cycles is {keep_cycles}; keep at least 1 cycle, or None for all")
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")
        activities = None if activities is None else list(activities)
        self.activities = parse_activities(activities)
        self.activity_filters = activity_types(activities or ())
        self.use_device = device_in(self.activities)
        warn_of_missing(self.activities)
        self.record_shapes = record_shapes or with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.acc_events = acc_events
        self.experimental_config = settings_of(experimental_config, with_stack=bool(with_stack))
        self.execution_trace_observer = execution_trace_observer
        self.post_processing_timeout_s = post_processing_timeout_s
        self._requested = activities
        self._keep_cycles = keep_cycles
        self._sampling = parse_sampling(sampling, where=f"{type(self).__name__}()")
        self._recorder = CycleRecorder(
            self._options(), on_cycle=self._trace_ready, trace_id_callback=custom_trace_id_callback
        )

    def _options(self) -> RecorderOptions:
        """What the attributes ask for now: as in torch, they may be set until a cycle is prepared."""
        stacks = stack_sources(self.with_stack, where=f"{type(self).__name__}()")
        config = read_config(self.experimental_config)
        return RecorderOptions(
            sources=sources_of(
                (DEFAULT_SOURCES if ProfilerActivity.CPU in self.activities else _RANGES_ONLY)
                | cuda_source(self._requested, self.activities),
                stacks=stacks,
                # Torch's Python tracer names the calls of modules whether or not it is asked to.
                with_modules=self.with_modules or "python" in stacks,
            ),
            record_shapes=self.record_shapes,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
            keep_cycles=self._keep_cycles,
            observer=self.execution_trace_observer,
            sampling=self._sampling,
            collections=config.record_python_gc_info,
            overloads=config.capture_overload_names,
            counters=tuple(config.performance_events),
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            if self.execution_trace_observer is not None:
                self.execution_trace_observer.cleanup()

    def start(self) -> None:
        """Prepare and start recording.

        Raises:
            CaptureBusyError: Another window is open in this process; it is unaffected.
        """
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        """Stop recording; does nothing if it has stopped."""
        self.stop_trace()

    def prepare_trace(self) -> None:
        """Prepare whatever would otherwise cost time in the recording, and name the next cycle."""
        self._recorder.prepare(self._options())

    def start_trace(self) -> None:
        """Start recording.

        Raises:
            CaptureBusyError: Another window is open in this process; it is unaffected.
        """
        self._recorder.start()

    def stop_trace(self) -> None:
        """Stop recording; does nothing if it has stopped."""
        self._recorder.stop()
        self._recorder.deliver()

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[object]) -> None:  # noqa: FBT001  # torch's
        """Switch collection off, or on again, in the middle of a recording; does nothing outside of one.

        While it is off, events that begin on any thread are not recorded; those that had begun end as usual.

        Args:
            activities: What to switch. With the CPU off nothing is collected; with CUDA off, ops still are.
        """
        if not self._recorder.is_open:
            return
        switched = toggled_here(activities)
        if ProfilerActivity.CPU in switched:
            Collector.instance().pause(paused=not enable)
        if ProfilerActivity.CUDA in switched:
            cuda.pause(paused=not enable)

    @property
    def cycles(self) -> tuple[Cycle, ...]:
        """The finished cycles that are kept, oldest first, including those of earlier uses."""
        return tuple(self._recorder.cycles)

    @property
    def kineto_results(self) -> KinetoResults | None:
        """The last finished cycle's events, as torch's profile offers them; None before the first."""
        return None if self._recorder.latest is None else self._recorder.latest.kineto_results

    @property
    def profiler(self) -> Self:
        """This profiler itself: torch's has an inner one, which code written for it asks for results."""
        return self

    def events(self) -> EventList:
        """The events of the last finished cycle, or of all of them with ``acc_events``.

        Raises:
            RuntimeError: `trace_only` is set. Torch raises the same.
            UsageError: No cycle has finished.
        """
        self._refuse_if_trace_only("events()")
        latest = self._latest("events()")
        if self.acc_events and self._recorder.cycles:
            return EventList(
                (cycle.recording for cycle in self._recorder.cycles),
                profile_memory=self.profile_memory,
                with_flops=self.with_flops,
            )
        return latest.events()

    @property
    def function_events(self) -> EventList:
        """The same as `events`, under the name that torch's inner profile has."""
        return self.events()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """The table of `events`; takes the arguments of `EventList.table`."""
        return self.events().table(*args, **kwargs)

    def total_average(self) -> FunctionEventAvg:
        """All events as one row; see `EventList.total_average`."""
        return self.events().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Self CPU time of all events, microseconds."""
        return self.events().self_cpu_time_total

    def _averages(self, grouping: Grouping, *, compat: Compat | None) -> KeyAverages:
        self._refuse_if_trace_only("key_averages()")
        self._latest("key_averages()")
        return self.events().averages(grouping, compat=compat)

    def export_chrome_trace(
        self,
        path: str | os.PathLike[str],
        use_python_export: bool = False,  # noqa: FBT001, FBT002  # torch's signature
    ) -> None:
        """Write the last finished cycle as a Chrome trace; see `Cycle.export_chrome_trace`.

        Args:
            use_python_export: Accepted with a warning, but has no effect.

        Raises:
            UsageError: No cycle has finished.
            OSError: The file cannot be written.
        """
        warn_of_python_export(asked=use_python_export)
        self._latest("export_chrome_trace()").export_chrome_trace(path)

    def add_metadata(self, key: str, value: str) -> None:
        """Add a string to the traces, at any time before they are exported.

        Raises:
            ValueError: The trace has that key of itself, such as ``traceEvents``.
        """
        self._recorder.metadata.add(key, value)

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add a JSON value to the traces, at any time before they are exported.

        Raises:
            ValueError: The value is not JSON, or the trace has that key of itself.
        """
        self._recorder.metadata.add_json(key, value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Add a JSON value to the traces, which `add_metadata` and `add_metadata_json` override.

        Raises:
            ValueError: The value is not JSON, or the trace has that key of itself.
        """
        self._recorder.metadata.preset(key, value)

    @property
    def preset_metadata(self) -> dict[str, str]:
        """What `preset_metadata_json` set, as JSON text."""
        return self._recorder.metadata.preset_values

    @property
    def custom_trace_id_callback(self) -> Callable[[], str] | None:
        """The function that names the next cycles; None for our own names. It may be set."""
        return self._recorder.trace_id_callback

    @custom_trace_id_callback.setter
    def custom_trace_id_callback(self, callback: Callable[[], str] | None) -> None:
        self._recorder.trace_id_callback = callback

    def set_custom_trace_id_callback(self, callback: Callable[[], str] | None) -> None:
        """Set the function that names the next cycles; None restores our own names."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """The name of the cycle being recorded, or of the last one; None before the first."""
        return self._recorder.trace_id

    def _trace_ready(self) -> None:
        """Called when a finished cycle has been added to `cycles`."""

    def _refuse_if_trace_only(self, call: str) -> None:
        if read_config(self.experimental_config).trace_only:
            raise RuntimeError(
                f"{call} is not available when trace_only=True in ExperimentalConfig. "
                "Use export_chrome_trace() instead."
            )

    def _latest(self, call: str) -> Cycle:
        if self._recorder.latest is None:
            raise UsageError(f"{call} has nothing to show{self._why_nothing()}")
        return self._recorder.latest

    def _why_nothing(self) -> str:
        if self._recorder.is_open:
            return " yet: recording goes on; call it after stop()"
        return ": this profiler was never started; use it in a with statement"
