"""Mark a test; CI fails if its ops become more, slower or hungrier, and names the op and the line.

The names here are torch.profiler's, with torch or without::

    from pytest_opprof import profile, record_function

    with profile() as prof, record_function("parse"):
        ...
    print(prof.key_averages().table(sort_by="self_cpu_time_total"))

Every pytest session imports this package, because it has the plugin. So each name is loaded on first use.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_opprof.analysis.evaluation import (
        BasicEvaluation,
        EventKey,
        EventMetrics,
        source_code_location,
    )
    from pytest_opprof.analysis.fx_markers import map_recorded_events_to_aten_ops_with_stack_trace
    from pytest_opprof.capture.ranges import RecordFunctionFast as _RecordFunctionFast
    from pytest_opprof.capture.ranges import range_pop, range_push, record_function
    from pytest_opprof.events.device import DeviceType
    from pytest_opprof.events.event_facts import EventMetadata
    from pytest_opprof.events.event_list import EventList
    from pytest_opprof.events.flops import register_flop_formula
    from pytest_opprof.events.function_event import FunctionEvent
    from pytest_opprof.events.function_event_avg import FunctionEventAvg
    from pytest_opprof.events.key_averages import KeyAverages
    from pytest_opprof.events.kineto_recording import KinetoRecording
    from pytest_opprof.events.names import MEMORY_EVENT_NAME, OUT_OF_MEMORY_EVENT_NAME, StringTable
    from pytest_opprof.events.names import filter_name as _filter_name
    from pytest_opprof.events.names import filter_stack_entry as _filter_stack_entry
    from pytest_opprof.events.names import rewrite_name as _rewrite_name
    from pytest_opprof.events.times import FormattedTimesMixin, Interval, Kernel
    from pytest_opprof.events.torch_rules import MemRecordsAcc
    from pytest_opprof.plugin.fixtures import Opprof
    from pytest_opprof.profiler.activities import ProfilerActivity, kineto_available, supported_activities
    from pytest_opprof.profiler.emit import emit_itt, emit_nvtx
    from pytest_opprof.profiler.enabled import run_on_profiler_start as _run_on_profiler_start
    from pytest_opprof.profiler.enabled import run_on_profiler_stop as _run_on_profiler_stop
    from pytest_opprof.profiler.enabled import set_is_profiler_enabled as _set_is_profiler_enabled
    from pytest_opprof.profiler.execution_trace_observer import ExecutionTraceObserver
    from pytest_opprof.profiler.experimental import ExperimentalConfig as _ExperimentalConfig
    from pytest_opprof.profiler.handlers import tensorboard_trace_handler
    from pytest_opprof.profiler.kineto_profile import KinetoProfile as _KinetoProfile
    from pytest_opprof.profiler.on_demand import listen
    from pytest_opprof.profiler.profile import init_for_cuda_graphs as _init_for_cuda_graphs
    from pytest_opprof.profiler.profile import profile
    from pytest_opprof.profiler.schedule import ProfilerAction, schedule
    from pytest_opprof.profiler.step_tracker import KinetoStepTracker
    from pytest_opprof.traces.kineto import TraceFile, load_trace
    from pytest_opprof.traces.nsys import load_nsys
    from pytest_opprof.traces.nvprof import EnforceUnique, load_nvprof, parse_nvprof_trace

__all__ = [
    "MEMORY_EVENT_NAME",
    "OUT_OF_MEMORY_EVENT_NAME",
    "BasicEvaluation",
    "DeviceType",
    "EnforceUnique",
    "EventKey",
    "EventList",
    "EventMetadata",
    "EventMetrics",
    "ExecutionTraceObserver",
    "FormattedTimesMixin",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "KeyAverages",
    "KinetoRecording",
    "KinetoStepTracker",
    "MemRecordsAcc",
    "Opprof",
    "ProfilerAction",
    "ProfilerActivity",
    "StringTable",
    "TraceFile",
    "_ExperimentalConfig",
    "_KinetoProfile",
    "_RecordFunctionFast",
    "_filter_name",
    "_filter_stack_entry",
    "_init_for_cuda_graphs",
    "_rewrite_name",
    "_run_on_profiler_start",
    "_run_on_profiler_stop",
    "_set_is_profiler_enabled",
    "emit_itt",
    "emit_nvtx",
    "kineto_available",
    "listen",
    "load_nsys",
    "load_nvprof",
    "load_trace",
    "map_recorded_events_to_aten_ops_with_stack_trace",
    "parse_nvprof_trace",
    "profile",
    "range_pop",
    "range_push",
    "record_function",
    "register_flop_formula",
    "schedule",
    "source_code_location",
    "supported_activities",
    "tensorboard_trace_handler",
]

# The names of each module; those that torch calls private have no underscore there.
_NAMES = {
    "analysis.evaluation": "BasicEvaluation EventKey EventMetrics source_code_location",
    "analysis.fx_markers": "map_recorded_events_to_aten_ops_with_stack_trace",
    "capture.ranges": "_RecordFunctionFast range_pop range_push record_function",
    "events.device": "DeviceType",
    "events.event_list": "EventList",
    "events.event_facts": "EventMetadata",
    "events.flops": "register_flop_formula",
    "events.function_event": "FunctionEvent",
    "events.function_event_avg": "FunctionEventAvg",
    "events.key_averages": "KeyAverages",
    "events.kineto_recording": "KinetoRecording",
    "events.names": "MEMORY_EVENT_NAME OUT_OF_MEMORY_EVENT_NAME StringTable "
    "_filter_name _filter_stack_entry _rewrite_name",
    "events.times": "FormattedTimesMixin Interval Kernel",
    "events.torch_rules": "MemRecordsAcc",
    "plugin.fixtures": "Opprof",
    "profiler.activities": "ProfilerActivity kineto_available supported_activities",
    "profiler.emit": "emit_itt emit_nvtx",
    "profiler.enabled": "_run_on_profiler_start _run_on_profiler_stop _set_is_profiler_enabled",
    "profiler.execution_trace_observer": "ExecutionTraceObserver",
    "profiler.experimental": "_ExperimentalConfig",
    "profiler.handlers": "tensorboard_trace_handler",
    "profiler.kineto_profile": "_KinetoProfile",
    "profiler.on_demand": "listen",
    "profiler.profile": "_init_for_cuda_graphs profile",
    "profiler.schedule": "ProfilerAction schedule",
    "profiler.step_tracker": "KinetoStepTracker",
    "traces.kineto": "TraceFile load_trace",
    "traces.nsys": "load_nsys",
    "traces.nvprof": "EnforceUnique load_nvprof parse_nvprof_trace",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "_is_profiler_enabled":  # it changes, so it is looked up each time
        return importlib.import_module(f"{__name__}.profiler.enabled").is_profiler_enabled()
    if name in {"autograd", "itt"}:  # modules with torch's names in them, as torch.profiler.itt is
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name.removeprefix("_"))
    # The next look-up finds it directly.
    globals()[name] = value
    return value


def load_ipython_extension(shell: Any) -> None:
    """Add the magic ``%%opprof``: IPython calls this for ``%load_ext pytest_opprof``."""
    importlib.import_module(f"{__name__}.cli.magic").register(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if os.environ.get("OPPROF_ATTACH"):
    __getattr__("listen")()
