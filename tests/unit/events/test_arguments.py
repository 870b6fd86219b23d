"""Each argument of the events' public calls has an effect: a new one without an entry here fails."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cuda.nvidia_databases import NvprofRows, write_nvprof
from support.kineto.event_arguments import COVERED, EVENT_ARGUMENTS, GROUPING, TABLE
from support.kineto.kineto_forests import CUDA, KinetoEvent, KinetoResult

from pytest_opprof import (
    EnforceUnique,
    EventList,
    EventMetadata,
    EventMetrics,
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
from pytest_opprof.events.key_averages import Grouping, KeyAverages


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


def written_stacks(path: Path, *items: FunctionEvent, **options: Any) -> list[str]:
    EventList(items).export_stacks(path, **options)
    return path.read_text().splitlines()


def test_arguments_of_export_stacks_matter(tmp_path: Path) -> None:
    """Two events of one stack, of 2.5 microseconds, and as much on the device."""
    path = tmp_path / "stacks"
    work = [made(id=i, start_us=10 * i, end_us=10 * i + 2.5, stack=["f", "main"]) for i in range(2)]
    assert written_stacks(path, *work) == ["main;f 5000"]
    assert written_stacks(path, *work, compat="torch") == ["main;f 2", "main;f 2"]
    assert written_stacks(path, *work, metric="self_cuda_time_total") == []
    assert written_stacks(path, *work, stacks="cpp") == []
    assert written_stacks(path, *work, stacks="all") == ["main;f 5000"]
    EventList(work).export_stacks(str(tmp_path / "other"))
    assert (tmp_path / "other").read_text() == "main;f 5000\n"


def test_arguments_of_averages_matter() -> None:
    plain, parted = Grouping(), Grouping(shapes=True)
    assert len(listed().averages(parted)) > len(listed().averages(plain))
    overlapping = EventList([KinetoRecording(KinetoResult([KinetoEvent(name="aten::is_leaf", end_ns=5)]))])
    assert len(overlapping.averages(plain)) > len(overlapping.averages(plain, compat="torch"))


def test_arguments_of_changes_to_a_list_matter() -> None:
    numbers = EventList([made(id=number) for number in (2, 1, 3)])
    numbers.insert(1, made(id=7))
    numbers.insert(0, made(id=8))
    assert [event.id for event in numbers] == [8, 2, 7, 1, 3]
    numbers.sort(key=lambda event: event.id)
    assert [event.id for event in numbers] == [1, 2, 3, 7, 8]
    numbers.sort(key=lambda event: -event.id, reverse=True)
    assert [event.id for event in numbers] == [1, 2, 3, 7, 8]
    numbers.sort(key=lambda event: event.id % 3)
    assert [event.id for event in numbers] == [3, 1, 7, 2, 8]


def test_arguments_of_sums_matter() -> None:
    row = FunctionEventAvg().add(made()).add(made(end_us=5.0))
    assert (row.count, row.cpu_time_total) == (2, 15)
    assert FunctionEventAvg(count=3).absorb(row).count == 5
    row.add_counters({"cycles": 7})
    row.add_counters({"cycles": 1, "branches": 2})
    assert row.counters == {"cycles": 8, "branches": 2}
    timed = FunctionEventAvg().add_with_device_time(made(end_us=4.0), 3.0, 2.0)
    assert (timed.cpu_time_total, timed.device_time_total, timed.self_device_time_total) == (4, 3, 2)


@pytest.mark.parametrize("field", inspect.signature(EventMetrics).parameters)
def test_each_argument_of_a_metric_is_in_it(field: str) -> None:
    some: dict[str, Any] = {field: 5}
    assert getattr(EventMetrics(**some), field) == 5 != getattr(EventMetrics(), field)


def test_arguments_of_small_functions_matter() -> None:
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


@pytest.mark.parametrize(("call", "known"), COVERED, ids=lambda part: getattr(part, "__qualname__", ""))
def test_every_argument_has_its_test(call: Callable[..., Any], known: set[str]) -> None:
    assert set(inspect.signature(call).parameters) - {"self"} == known
