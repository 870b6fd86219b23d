"""Each argument of the events' public calls changes something: a new one without an entry here fails."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from kineto_forests import CUDA, KinetoEvent, KinetoResult
from nvidia_databases import NvprofRows, write_nvprof

from pytest_opprof import (
    EnforceUnique,
    EventList,
    EventMetadata,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
    Kernel,
    KinetoRecording,
    MemRecordsAcc,
    _filter_name,
    _filter_stack_entry,
    _rewrite_name,
    load_nvprof,
    parse_nvprof_trace,
)
from pytest_opprof.events.key_averages import KeyAverages

# What an argument is given, besides its default, and what then differs.
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


def made(**known: Any) -> FunctionEvent:
    defaults: dict[str, Any] = {"id": 1, "name": "aten::add", "thread": 1, "start_us": 0.0, "end_us": 10.0}
    return FunctionEvent(**(defaults | known))


@pytest.mark.parametrize("argument", EVENT_ARGUMENTS)
def test_each_argument_of_an_event_is_in_the_event(argument: str) -> None:
    value, attribute = EVENT_ARGUMENTS[argument]
    assert getattr(made(**{argument: value}), attribute) != getattr(made(), attribute)


def events() -> list[FunctionEvent]:
    """A model's step: an op in an op, memory, FLOPs, device work, shapes, overloads and stacks."""
    shared: dict[str, Any] = {"use_device": "cuda", "flops": 0, "overload_name": ""}
    outer = made(name="outer", start_us=0, end_us=2_000, stack=["a" * 90, "main"], input_shapes=[], **shared)
    shared["input_shapes"] = [[3] * 40]
    known: dict[str, Any] = {"stack": ["b", "main"], "cpu_memory_usage": 64, **shared}
    inner = made(name="aten::" + "n" * 60, start_us=10, end_us=900, **known | {"flops": 12})
    again = made(
        name=inner.name,
        start_us=1_000,
        end_us=1_100,
        **known | {"overload_name": "out", "stack": ["c"], "input_shapes": [[4]]},
    )
    inner.append_kernel("gemm", 0, 5.0)
    kernel = made(
        name="gemm",
        device_type=CUDA,
        start_us=0,
        end_us=5,
        stack=[],
        **shared,
    )
    annotation = made(
        name="region", device_type=CUDA, start_us=0, end_us=9, is_user_annotation=True, stack=[], **shared
    )
    return [outer, inner, again, kernel, annotation]


def listed(**options: Any) -> EventList:
    built = EventList(events(), **{"use_device": "cuda", **options})
    built._build_tree()
    return built


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


@pytest.mark.parametrize("argument", TABLE)
def test_each_argument_of_a_table_changes_it(argument: str) -> None:
    for rows in (listed(), listed().key_averages(group_by_input_shapes=True, group_by_stack_n=2)):
        if argument == "sort_by":
            assert rows.table(sort_by="cpu_time_total") != rows.table(sort_by="self_device_time_total")
        else:
            assert rows.table(**{argument: TABLE[argument]}) != rows.table()


@pytest.mark.parametrize("argument", GROUPING)
def test_each_argument_of_key_averages_parts_rows(argument: str) -> None:
    assert len(listed().key_averages(**{argument: GROUPING[argument]})) > len(listed().key_averages())


def test_compat_changes_key_averages() -> None:
    overlapping = KinetoRecording(KinetoResult([KinetoEvent(name="aten::is_leaf", end_ns=5)]))
    assert len(EventList([overlapping]).key_averages()) == 1
    assert len(EventList([overlapping]).key_averages(compat="torch")) == 0


def test_each_option_of_a_list_changes_its_table() -> None:
    for option in ({"profile_memory": True}, {"with_flops": True}):
        assert listed(**option).table() != listed().table()


def test_items_and_device_of_a_list_are_in_its_trace(tmp_path: Path) -> None:
    written = []
    for number, (items, device) in enumerate([([], None), (events(), "cuda"), (events(), "xpu")]):
        for event in items:
            event.trace_name = event.name
        EventList(items, use_device=device).export_chrome_trace(tmp_path / f"{number}.json")
        written.append((tmp_path / f"{number}.json").read_text())
    assert len(set(written)) == 3


def test_result_and_device_of_kinetos_recording_matter() -> None:
    kernel = KinetoResult([KinetoEvent(name="gemm", end_ns=5, device_type=CUDA)])
    assert len(KinetoRecording(kernel)) != len(KinetoRecording(KinetoResult([])))
    assert KinetoRecording(kernel, use_device="xpu").use_device != KinetoRecording(kernel).use_device


def test_plain_values_hold_their_arguments() -> None:
    assert (Interval(start=1, end=4).start, Interval(start=1, end=4).elapsed_us()) == (1, 3)
    assert Kernel(name="gemm", device=1, duration=2.0) == ("gemm", 1, 2.0)
    for field in EventMetadata._fields:
        some: dict[str, Any] = {field: 3}
        assert getattr(EventMetadata(**some), field) == 3 != getattr(EventMetadata(), field)


@pytest.mark.parametrize(
    "field", [name for name in inspect.signature(FunctionEventAvg).parameters if name != "first"]
)
def test_each_argument_of_an_average_is_in_it(field: str) -> None:
    some: dict[str, Any] = {field: 5}
    assert getattr(FunctionEventAvg(**some), field) == 5 != getattr(FunctionEventAvg(), field)


def test_first_event_of_an_average_is_its_family() -> None:
    outer, inner, *_ = listed()
    assert FunctionEventAvg(first=inner).cpu_parent is outer
    assert FunctionEventAvg().cpu_parent is None


def test_arguments_of_an_averages_list_are_in_its_table() -> None:
    rows = listed().key_averages()
    plain = KeyAverages(rows).table()
    assert KeyAverages([]).table() != plain
    for option in ({"profile_memory": True}, {"with_flops": True}, {"notes": ["a note"]}):
        assert KeyAverages(rows, **option).table() != plain


def test_arguments_of_the_small_ones_matter() -> None:
    assert _filter_name("[memory]") != _filter_name("aten::add")
    assert _filter_stack_entry("torch/tensor.py: backward") != _filter_stack_entry("model.py: backward")
    assert _rewrite_name("ProfilerStep#1") != _rewrite_name("ProfilerStep#2")
    assert _rewrite_name("ProfilerStep#1", with_wildcard=True) != _rewrite_name("ProfilerStep#1")
    record = [KinetoEvent(start_ns=5), False]
    within = MemRecordsAcc(mem_records=[record])
    found = [list(within.in_interval(*times)) for times in ((0, 9), (6, 9), (0, 4))]
    assert [len(pairs) for pairs in found] == [1, 0, 0]
    unique = EnforceUnique()
    unique.see("a")
    unique.see("b")


def test_arguments_of_nvprofs_readers_matter(tmp_path: Path) -> None:
    rows = NvprofRows(texts=[(1, "a")], markers=[(1, 1, 10, None), (1, 0, 1_010, None)])
    some, none = write_nvprof(tmp_path / "a.db", rows), write_nvprof(tmp_path / "b.db", NvprofRows())
    for read in (load_nvprof, parse_nvprof_trace):
        assert len(read(some)) != len(read(none))
        assert read(some)[0].cpu_time_total != read(some, compat="torch")[0].cpu_time_total


COVERED: tuple[tuple[Callable[..., Any], set[str]], ...] = (
    (FunctionEvent, set(EVENT_ARGUMENTS)),
    (EventList, {"items", "use_device", "profile_memory", "with_flops"}),
    (EventList.export_chrome_trace, {"path"}),
    (EventList.table, set(TABLE)),
    (KeyAverages.table, set(TABLE)),
    (EventList.key_averages, {*GROUPING, "compat"}),
    (KeyAverages, {"rows", "profile_memory", "with_flops", "notes"}),
    (KinetoRecording, {"result", "use_device"}),
    (Interval, {"start", "end"}),
    (Kernel, {"name", "device", "duration"}),
    (MemRecordsAcc, {"mem_records"}),
    (MemRecordsAcc.in_interval, {"start_ns", "end_ns"}),
    (_filter_name, {"name"}),
    (_filter_stack_entry, {"entry"}),
    (_rewrite_name, {"name", "with_wildcard"}),
    (EnforceUnique.see, {"key"}),
    (load_nvprof, {"path", "compat"}),
    (parse_nvprof_trace, {"path", "compat"}),
    (FunctionEvent.append_kernel, {"name", "device", "duration"}),
    (FunctionEvent.append_cpu_child, {"child"}),
    (FunctionEvent.set_cpu_parent, {"parent"}),
    (FunctionEventAvg.add, {"other"}),
)


@pytest.mark.parametrize(("call", "known"), COVERED, ids=lambda part: getattr(part, "__qualname__", ""))
def test_every_argument_has_its_test(call: Callable[..., Any], known: set[str]) -> None:
    assert set(inspect.signature(call).parameters) - {"self"} == known
