"""The arguments of the events' public calls, and their values in tests/unit/events/test_arguments.py."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from support.kineto.kineto_forests import CUDA

import pytest_opprof as opprof
from pytest_opprof.events.key_averages import KeyAverages

# For each argument, a value other than its default, and what then differs.
EVENT_ARGUMENTS: dict[str, tuple[Any, str]] = {
    "id": (7, "id"),
    "name": ("aten::mul", "key"),
    "thread": (9, "device_resource_id"),
    "start_us": (1.0, "cpu_time_total"),
    "end_us": (8.0, "cpu_time_total"),
    "overload_name": ("Tensor", "overload_name"),
    "fwd_thread": (3, "fwd_thread"),
    "input_shapes": ([[2]], "input_shapes"),
    "stack": (["f"], "stack"),
    "scope": (7, "scope"),
    "use_device": ("cuda", "use_device"),
    "cpu_memory_usage": (5, "self_cpu_memory_usage"),
    "device_memory_usage": (5, "self_device_memory_usage"),
    "is_async": (True, "self_cpu_time_total"),
    "is_remote": (True, "is_remote"),
    "sequence_nr": (5, "sequence_nr"),
    "node_id": (5, "node_id"),
    "device_type": (CUDA, "cpu_time_total"),
    "device_index": (1, "device_index"),
    "device_resource_id": (13, "device_resource_id"),
    "is_legacy": (True, "is_legacy"),
    "flops": (5, "flops"),
    "trace_name": ("x", "trace_name"),
    "concrete_inputs": (["1"], "concrete_inputs"),
    "kwinputs": ({"a": 1}, "kwinputs"),
    "is_user_annotation": (True, "is_user_annotation"),
    "is_python_function": (True, "is_python_function"),
    "activity_type": ("kernel", "activity_type"),
    "metadata_json": ("{}", "_metadata_json"),
    "flow_id": (1, "flow_id"),
    "flow_type": (1, "flow_type"),
    "flow_start": (True, "flow_start"),
    "external_id": (1, "external_id"),
    "linked_correlation_id": (1, "linked_correlation_id"),
    "extra_meta": ({"Rank": "3"}, "event_metadata"),
    "structured_input_shapes": ([[2]], "structured_input_shapes"),
    "structured_input_strides": ([[1]], "structured_input_strides"),
    "input_dtypes": (["float"], "input_dtypes"),
    "python_id": (1, "python_id"),
    "python_parent_id": (1, "python_parent_id"),
    "python_module_id": (1, "python_module_id"),
}

TABLE: Mapping[str, Any] = {
    "sort_by": "count",
    "row_limit": 1,
    "max_src_column_width": 20,
    "max_name_column_width": 20,
    "max_shapes_column_width": 20,
    "header": "a header",
    "top_level_events_only": True,
    "time_unit": "s",
    "compat": "torch",
}
GROUPING: Mapping[str, Any] = {
    "group_by_input_shapes": True,
    "group_by_stack_n": 1,
    "group_by_overload_name": True,
}

# the arguments that a test covers, by call
COVERED: tuple[tuple[Callable[..., Any], set[str]], ...] = (
    (opprof.FunctionEvent, set(EVENT_ARGUMENTS)),
    (opprof.EventList, {"items", "use_device", "profile_memory", "with_flops"}),
    (opprof.EventList.export_chrome_trace, {"path"}),
    (opprof.EventList.table, set(TABLE)),
    (KeyAverages.table, set(TABLE)),
    (opprof.EventList.key_averages, {*GROUPING, "compat"}),
    (KeyAverages, {"rows", "profile_memory", "with_flops", "notes"}),
    (opprof.KinetoRecording, {"result", "use_device"}),
    (opprof.Interval, {"start", "end"}),
    (opprof.Kernel, {"name", "device", "duration"}),
    (opprof.MemRecordsAcc, {"mem_records"}),
    (opprof.MemRecordsAcc.in_interval, {"start_ns", "end_ns"}),
    (opprof._filter_name, {"name"}),
    (opprof._filter_stack_entry, {"entry"}),
    (opprof._rewrite_name, {"name", "with_wildcard"}),
    (opprof.EnforceUnique.see, {"key"}),
    (opprof.load_nvprof, {"path"}),
    (opprof.parse_nvprof_trace, {"path"}),
    (opprof.FunctionEvent.append_kernel, {"name", "device", "duration"}),
    (opprof.FunctionEvent.append_cpu_child, {"child"}),
    (opprof.FunctionEvent.set_cpu_parent, {"parent"}),
    (opprof.FunctionEventAvg.add, {"other"}),
    (opprof.FunctionEventAvg.absorb, {"other"}),
    (opprof.FunctionEventAvg.add_counters, {"counters"}),
    (opprof.FunctionEventAvg.add_with_device_time, {"other", "total_us", "self_us"}),
    # every field that exists
    (opprof.FunctionEventAvg, set(inspect.signature(opprof.FunctionEventAvg).parameters)),
    (opprof.EventMetadata, set(opprof.EventMetadata._fields)),
    (opprof.EventMetrics, set(inspect.signature(opprof.EventMetrics).parameters)),
    (opprof.EventList.export_stacks, {"path", "metric", "compat", "stacks"}),
    (opprof.EventList.averages, {"grouping", "compat"}),
    (opprof.EventList.insert, {"index", "value"}),
    (opprof.EventList.sort, {"key", "reverse"}),
)
