"""``torch.autograd.profiler`` without torch: the older profiler, and the names beside it."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from pytest_opprof.capture.ranges import record_function
from pytest_opprof.capture.sources import WithStack
from pytest_opprof.capture.torch_ops import imported_torch
from pytest_opprof.events.columns import Compat
from pytest_opprof.events.event_list import EventList
from pytest_opprof.events.function_event import FunctionEvent
from pytest_opprof.events.function_event_avg import FunctionEventAvg
from pytest_opprof.events.key_averages import Averaged, Grouping, KeyAverages
from pytest_opprof.events.kineto_results import KinetoResults
from pytest_opprof.events.torch_rules import MemRecordsAcc
from pytest_opprof.profiler.activities import ProfilerActivity
from pytest_opprof.profiler.emit import emit_itt, emit_nvtx
from pytest_opprof.profiler.enabled import SharingModule
from pytest_opprof.profiler.enabled import set_is_profiler_enabled as _set_is_profiler_enabled
from pytest_opprof.profiler.handlers import warn_of_python_export
from pytest_opprof.profiler.kineto_profile import KinetoProfile
from pytest_opprof.profiler.step_tracker import KinetoStepTracker
from pytest_opprof.traces.nvprof import EnforceUnique, load_nvprof, parse_nvprof_trace
from pytest_opprof.units import NS_IN_S, NS_IN_US

if TYPE_CHECKING:
    _is_profiler_enabled: bool
    _run_on_profiler_start: Callable[[], None]
    _run_on_profiler_stop: Callable[[], None]
sys.modules[__name__].__class__ = SharingModule

__all__ = [
    "EnforceUnique",
    "EventList",
    "FunctionEvent",
    "KinetoStepTracker",
    "MemRecordsAcc",
    "_is_profiler_enabled",
    "_run_on_profiler_start",
    "_run_on_profiler_stop",
    "_set_is_profiler_enabled",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "parse_nvprof_trace",
    "profile",
    "record_function",
]

_DEVICES: Final = {
    "cuda": ProfilerActivity.CUDA,
    "xpu": ProfilerActivity.XPU,
    "mtia": ProfilerActivity.MTIA,
    "hpu": ProfilerActivity.HPU,
}


@dataclass
class _ProfilerStats:
    """A profile's overhead and losses.

    The first seven fields are torch's. Nothing is parsed and no tree is built here: the parse field has the
    time of the latest `key_averages`, and the tree field stays 0.
    """

    profiling_window_duration_sec: float = 0
    number_of_events: int = 0
    profiler_prepare_call_duration_us: int = 0
    profiler_enable_call_duration_us: int = 0
    profiler_disable_call_duration_us: int = 0
    parse_kineto_call_duration_us: int = 0
    function_events_build_tree_call_duration_us: int = 0
    dropped_events: int = 0  # events for which there was no room
    truncated: bool = False  # the byte budget or the disk ended the recording early


def _of_inner(name: str) -> Any:
    """An argument as an attribute, which may be set until the profile is entered."""
    return property(
        lambda self: getattr(self._profile, name), lambda self, value: setattr(self._profile, name, value)
    )


class profile(Averaged):  # noqa: N801  # torch's name
    """Record ops while the block runs, as ``torch.autograd.profiler.profile`` does, with its arguments.

    Options that torch lacks, such as ``sampling`` and ``keep_cycles``, are in `pytest_opprof.profile` only.
    Unlike torch's, this profile records the ops of all threads, gives its results any number of times, and
    has empty results instead of None if it was not enabled.

    Args:
        enabled: False makes it do nothing; entering it gives None, as torch's does.
        use_cuda: Deprecated: means ``use_device="cuda"``.
        use_device: The device to record beside the CPU: "cuda", "xpu", "mtia" or "hpu". If it is unknown or
            missing, a warning names it.
        record_shapes: Record the shapes, types and numbers passed to ops.
        with_flops: Count the floating point operations of ops that have a formula; records shapes too.
        profile_memory: Record allocations and frees by torch's allocators.
        with_stack: Record Python and C calls, and so each event's stack; ``"cpp"`` and ``"all"`` as in
            `KinetoProfile`.
        with_modules: Record the calls of torch modules.
        use_kineto: Required without the CPU. Otherwise no effect: there is one collector.
        use_cpu: False leaves ops out, and keeps ranges.
        experimental_config: An `_ExperimentalConfig`.
        acc_events: Accepted with a warning: the profile is entered only once, so no cycles add up.
        custom_trace_id_callback: Names the trace.
        post_processing_timeout_s: No effect: nothing takes long.
        activity_filters: Accepted with a warning: activity types cannot be chosen one by one.

    Raises:
        AssertionError: The CPU is left out without ``use_kineto``, or nothing is left to record.
        ValueError: The timeout is negative.
        TypeError: `experimental_config` is neither ours nor torch's.
    """

    record_shapes = _of_inner("record_shapes")
    with_flops = _of_inner("with_flops")
    profile_memory = _of_inner("profile_memory")
    with_stack = _of_inner("with_stack")
    with_modules = _of_inner("with_modules")
    experimental_config = _of_inner("experimental_config")
    acc_events = _of_inner("acc_events")
    custom_trace_id_callback = _of_inner("custom_trace_id_callback")
    post_processing_timeout_s = _of_inner("post_processing_timeout_s")
    activity_filters = _of_inner("activity_filters")

    def __init__(
        self,
        enabled: bool = True,  # noqa: FBT001, FBT002  # torch's signature
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: WithStack = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: object | None = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: Mapping[Any, Iterable[str]] | None = None,
    ) -> None:
        self.enabled = enabled
        self.entered = False
        self._finished = False
        self._stats = _ProfilerStats()
        self.profiling_start_time_ns = self.profiling_end_time_ns = 0
        if not enabled:
            return
        if not use_cpu and not use_kineto:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        if acc_events:
            warnings.warn(
                "acc_events has no effect: this profile is entered only once. To record several cycles, use "
                "pytest_opprof.profile",
                stacklevel=2,
            )
        self.use_cpu = use_cpu
        self.use_device = _available_device(use_device, use_cuda=use_cuda)
        self._profile = KinetoProfile(
            activities=_activities(self.use_device, use_cpu=use_cpu, filters=activity_filters),
            record_shapes=record_shapes,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_modules=with_modules,
            experimental_config=experimental_config,
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
            keep_cycles=None if acc_events else 1,
        )

    @property
    def trace_id(self) -> str:
        """The name of the trace; empty before the profile is entered."""
        return (self._profile.get_trace_id() or "") if self.enabled else ""

    def __enter__(self) -> Self | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        begin = time.perf_counter_ns()
        self._profile.prepare_trace()
        prepared = time.perf_counter_ns()
        self._profile.start_trace()
        self.profiling_start_time_ns = time.perf_counter_ns()
        self._stats.profiler_prepare_call_duration_us = (prepared - begin) // NS_IN_US
        self._stats.profiler_enable_call_duration_us = (self.profiling_start_time_ns - prepared) // NS_IN_US
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self.enabled:
            return
        self._synchronize()
        self.profiling_end_time_ns = time.perf_counter_ns()
        self._finished = True  # also if stop_trace() raises, which a warning may
        self._profile.stop_trace()
        ended = time.perf_counter_ns()
        recording = self._profile.cycles[-1].recording
        stats = self._stats
        stats.profiler_disable_call_duration_us = (ended - self.profiling_end_time_ns) // NS_IN_US
        window_ns = self.profiling_end_time_ns - self.profiling_start_time_ns
        stats.profiling_window_duration_sec = window_ns / NS_IN_S
        stats.number_of_events = len(recording)
        stats.dropped_events = recording.stats.dropped
        stats.truncated = recording.stats.truncated

    def _synchronize(self) -> None:
        torch = imported_torch()
        device = getattr(torch, self.use_device, None) if self.use_device else None
        if device is not None and hasattr(device, "synchronize"):
            device.synchronize()

    def __repr__(self) -> str:
        return repr(self.function_events) if self._is_done else f"<unfinished {__name__}.profile>"

    def __str__(self) -> str:
        return str(self.function_events) if self._is_done else f"<unfinished {__name__}.profile>"

    @property
    def _is_done(self) -> bool:
        return self._finished or not self.enabled

    @property
    def kineto_results(self) -> KinetoResults | None:
        """The events as torch's profile offers them; None before the block has ended."""
        return self._profile.kineto_results if self.enabled and self._finished else None

    @property
    def function_events(self) -> EventList:
        """The events.

        Raises:
            AssertionError: The block has not ended. Torch raises the same.
            RuntimeError: It recorded for a trace only.
        """
        return self._results().events() if self.enabled else EventList()

    def _results(self) -> KinetoProfile:
        if not self.enabled or not self._finished:
            raise AssertionError("Expected profiling results")
        return self._profile

    def table(  # noqa: PLR0917  # torch's signature
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,  # noqa: FBT001, FBT002  # torch's signature
    ) -> str:
        """The events as text, a row each; see `EventList.table`."""
        return self.function_events.table(
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
        )

    def _averages(self, grouping: Grouping, *, compat: Compat | None) -> KeyAverages:
        begin = time.perf_counter_ns()
        averages = self.function_events.averages(grouping, compat=compat)
        self._stats.parse_kineto_call_duration_us = (time.perf_counter_ns() - begin) // NS_IN_US
        return averages

    def total_average(self) -> FunctionEventAvg:
        """All events in one row."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of all events' self CPU times, microseconds."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(
        self,
        path: str | os.PathLike[str],
        metadata: Mapping[str, str] | None = None,
        use_python_export: bool = False,  # noqa: FBT001, FBT002  # torch's signature
    ) -> None:
        """Write a Chrome trace; it may be called any number of times.

        Args:
            path: The file; compressed if it ends in ``.gz``.
            metadata: JSON texts to add to the trace, by key.
            use_python_export: Accepted with a warning: there is one way to write a trace here.

        Raises:
            AssertionError: The block has not ended.
            ValueError: Metadata are not JSON, or have a key that the trace has of itself.
            OSError: The file cannot be written.
        """
        warn_of_python_export(asked=use_python_export)
        results = self._results()
        for key, value in (metadata or {}).items():
            results.add_metadata_json(key, value)
        results.export_chrome_trace(path)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write the stacks and the cost of each; see `EventList.export_stacks`.

        Raises:
            AssertionError: The block has not ended, or stacks were not recorded.
            ValueError: There is no such metric.
            OSError: The file cannot be written.
        """
        self._results().export_stacks(path, metric)

    def toggle_collection_dynamic(self, enabled: bool, activities: Iterable[object]) -> None:  # noqa: FBT001  # torch's
        """Switch collection off, or on again; see `KinetoProfile.toggle_collection_dynamic`."""
        if self.enabled:
            self._profile.toggle_collection_dynamic(enabled, activities)


def _available_device(use_device: str | None, *, use_cuda: bool) -> str | None:
    """The device to profile; None, with a warning, if it is unknown or not available."""
    if use_cuda:
        warnings.warn(
            "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead.",
            FutureWarning,
            stacklevel=3,
        )
        use_device = "cuda"
    if use_device is None:
        return None
    torch = imported_torch()
    renamed = torch._C._get_privateuse1_backend_name() if torch is not None else None  # noqa: SLF001  # torch's own way
    if use_device not in {*_DEVICES, renamed} - {"privateuseone"}:
        warnings.warn(f"The {use_device} is not a valid device option.", stacklevel=3)
        return None
    module = getattr(torch, use_device, None)
    if module is None or not module.is_available():
        warnings.warn(
            f"{use_device.upper()} is not available, disabling {use_device.upper()} profiling", stacklevel=3
        )
        return None
    return use_device


def _activities(
    use_device: str | None, *, use_cpu: bool, filters: Mapping[Any, Iterable[str]] | None
) -> list[object]:
    """The ``activities`` argument of `KinetoProfile`; `filters` has names of activity types by activity."""
    wanted = [ProfilerActivity.CPU] if use_cpu else []
    if use_device is not None:
        wanted.append(_DEVICES.get(use_device, ProfilerActivity.PrivateUse1))
    if not wanted:
        raise AssertionError("No activities specified for the profiler")
    types = {getattr(activity, "name", activity): names for activity, names in (filters or {}).items()}
    return [{activity: types[activity.name]} if activity.name in types else activity for activity in wanted]
