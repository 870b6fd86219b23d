"""Code written for torch.profiler, over torch's profile and over ours: it must see the same."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pytest_opprof
from pytest_opprof import DeviceType, EventList, FunctionEvent, KinetoRecording, load_trace
from pytest_opprof.events.event_facts import EventFacts
from pytest_opprof.events.forest import EventForest
from pytest_opprof.events.kineto_results import recorded_events

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("torch")
BOTH = pytest.mark.parametrize("api", [torch.profiler, pytest_opprof], ids=["torch", "ours"])


def program() -> None:
    with torch.profiler.record_function("load"):
        torch.ones(2, 3).add(1, alpha=2).sum(1)


def profiled(api: Any, program: Callable[[], object] = program, **settings: object) -> Any:
    with api.profile(activities=[torch.profiler.ProfilerActivity.CPU], **settings) as prof:
        program()
    return prof


# ---- device types ----


@BOTH
def test_device_types_equal_torchs(api: Any) -> None:
    host, device = torch.autograd.DeviceType.CPU, torch.autograd.DeviceType.CUDA
    prof = profiled(api)
    shown = [*prof.events(), *prof.key_averages(), prof.key_averages().total_average()]
    if api is pytest_opprof:
        shown += [*prof.events().as_torch(), *prof.key_averages(compat="torch")]
    assert shown
    for one in shown:
        kind = one.device_type
        assert isinstance(kind, torch.autograd.DeviceType)
        assert (kind == host, host == kind, kind != host, host != kind) == (True, True, False, False)
        assert (kind == device, device == kind, kind != device) == (False, False, True)
        assert {kind, host} == {host}
        assert (str(kind), kind.name, int(kind)) == ("DeviceType.CPU", "CPU", 0)


def test_device_types_equal_ours_too() -> None:
    kind, host, device = profiled(pytest_opprof).events()[0].device_type, DeviceType.CPU, DeviceType.CUDA
    assert (kind == host, host == kind, kind == device, device == kind) == (True, True, False, False)
    assert {kind, host} == {host}


def test_events_take_torchs_device_types() -> None:
    kernel = FunctionEvent(
        id=1,
        name="gemm",
        thread=1,
        start_us=0,
        end_us=4,
        use_device="cuda",
        device_type=torch.autograd.DeviceType.CUDA,
    )
    op = FunctionEvent(
        id=2, name="mm", thread=1, start_us=0, end_us=9, device_type=torch.autograd.DeviceType.CPU
    )
    assert (kernel.cpu_time_total, kernel.device_time_total, op.cpu_time_total) == (0, 4, 9)
    assert [row.device_type.name for row in EventList([kernel, op]).key_averages()] == ["CUDA", "CPU"]


# ---- the values of inputs ----


def many_inputs() -> None:
    torch.empty(2, 3).fill_(1.5).sum(1, keepdim=True)
    torch.clamp(torch.ones(3), min=float("-inf"))
    torch._foreach_mul([torch.ones(1)] * 3, [1.0, 2.5, 3.0])
    torch.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 1, 1), stride=2)


def concrete_inputs(events: Any) -> list[tuple[str, Any]]:
    # torch's list omits an op whose only child has its name
    return [(event.name, event.concrete_inputs) for event in events if event.name != "aten::mul"]


def test_the_values_of_inputs_match_torchs(tmp_path: Path) -> None:
    expected = profiled(torch.profiler, many_inputs, record_shapes=True)
    prof = profiled(pytest_opprof, many_inputs, record_shapes=True)
    values = concrete_inputs(expected.events())
    assert ("aten::sum", [None, [1], True, None]) in values
    assert concrete_inputs(prof.events()) == concrete_inputs(prof.events().as_torch()) == values
    told = [event.concrete_inputs() for event in prof.profiler.kineto_results.events()]
    assert told == [event.concrete_inputs() for event in expected.profiler.kineto_results.events()]
    for one in (prof, expected):
        path = tmp_path / "trace.json"
        one.export_chrome_trace(str(path))
        read = [told for told in concrete_inputs(load_trace(path).events()) if told[1]]
        assert read == [told for told in values if told[1]]


def test_convolutions_have_torchs_flops() -> None:
    expected = profiled(torch.profiler, many_inputs, with_flops=True)
    prof = profiled(pytest_opprof, many_inputs, with_flops=True)
    told = {event.name(): event.flops() for event in expected.profiler.kineto_results.events()}
    assert told["aten::conv2d"] > 0
    assert {event.name(): event.flops() for event in prof.kineto_results.events()} == told
    read = KinetoRecording(expected.profiler.kineto_results)
    (convolution,) = (event for event in recorded_events(EventForest(read)) if event.name() == "aten::conv2d")
    assert convolution.flops() == told["aten::conv2d"]


# ---- copies ----


def copied_by_pickle(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301  # our own


@BOTH
@pytest.mark.parametrize("copied", [copied_by_pickle, copy.deepcopy], ids=["pickle", "deepcopy"])
def test_events_and_averages_can_be_copied(api: Any, copied: Callable[[Any], Any]) -> None:
    events = profiled(api, with_stack=True, record_shapes=True, profile_memory=True).events()
    rows = events.key_averages()
    assert copied(events[0]).name == events[0].name
    assert copied(rows).table() == rows.table()
    assert copied(rows[0]).cpu_time_total == rows[0].cpu_time_total
    copies = copied(events)
    assert type(copies) is type(events)
    assert copies.table() == events.table()
    assert [len(event.cpu_children) for event in copies] == [len(event.cpu_children) for event in events]
    children = [child for event in copies for child in event.cpu_children]
    assert all(any(child is event for event in copies) for child in children)
    assert all(any(child is other for other in child.cpu_parent.cpu_children) for child in children)
    assert copies.key_averages().total_average().count == len(events)


def test_a_copied_event_keeps_its_facts() -> None:
    with pytest_opprof.profile(profile_memory=True) as prof, pytest_opprof.record_function("outer"):
        torch.ones(9)
    events = prof.events()
    names = [*EventFacts.__slots__, "kind", "step", "start_ns", "self_cpu_time_total_ns", "counters"]
    different = {"cpu_parent", "cpu_children"}
    for event, copy_of_it in zip(events, copied_by_pickle(events), strict=True):
        assert {name: getattr(copy_of_it, name) for name in names if name not in different} == {
            name: getattr(event, name) for name in names if name not in different
        }


# ---- the rest of the names ----


@BOTH
def test_tables_take_what_torchs_take(api: Any) -> None:
    rows = profiled(api).key_averages()
    assert rows.table(row_limit=None) == rows.table(row_limit=-1)
    assert rows.table(time_unit="ns") == rows.table(time_unit="") == rows.table()


@BOTH
def test_lists_of_events_add_up_as_lists_do(api: Any) -> None:
    ours, others = profiled(api).events(), profiled(api).events()
    both = [*ours, *others]
    for joined in (ours + others, ours + list(others), list(ours) + others):
        assert type(joined) is list
        assert all(one is other for one, other in zip(joined, both, strict=True))
    assert len(ours * 2) == len(2 * ours) == 2 * len(ours)
    assert (type(ours * 2), type(ours.copy()), len(ours.copy())) == (list, list, len(ours))
    with pytest.raises(TypeError):
        _ = ours + 1


@BOTH
def test_names_of_the_module_are_there(api: Any) -> None:
    assert api.kineto_available() is True
    assert [int(api.ProfilerActivity.CPU), int(api.ProfilerActivity.CUDA)] == [0, 2]


def test_a_copy_made_without_torch_equals_torchs() -> None:
    assert copied_by_pickle(DeviceType.CUDA) == torch.autograd.DeviceType.CUDA


@BOTH
def test_rows_can_have_attributes_of_ones_own(api: Any) -> None:
    row = profiled(api).key_averages()[0]
    row.note = "the largest"
    shown = vars(row)
    assert (shown["note"], shown["key"], shown["count"]) == ("the largest", row.key, row.count)
    assert "first" not in shown
    assert copied_by_pickle(row).note == "the largest"


@BOTH
def test_the_inner_profile_has_torchs_results(api: Any) -> None:
    inner = profiled(api).profiler
    assert [event.id for event in inner.function_events] == [event.id for event in inner.function_events]
    assert inner.table("count", row_limit=1) == inner.function_events.table("count", row_limit=1)
    assert inner.total_average().key == "Total"
    expected = sum(event.self_cpu_time_total for event in inner.function_events)
    assert inner.self_cpu_time_total == pytest.approx(expected)


@BOTH
@pytest.mark.filterwarnings("ignore:activity types:UserWarning")  # ours are not chosen one by one
def test_a_profile_keeps_its_arguments(api: Any) -> None:
    cpu = api.ProfilerActivity.CPU
    steps = api.schedule(wait=0, warmup=1, active=1, repeat=1)
    observer = api.ExecutionTraceObserver()
    prof = api.profile(
        activities=[{cpu: ["CPU_OP"]}],
        schedule=steps,
        execution_trace_observer=observer,
        custom_trace_id_callback=observer.is_running,
        post_processing_timeout_s=3.0,
    )
    assert (prof.schedule, prof.record_steps, prof.use_device) == (steps, True, None)
    assert (prof.execution_trace_observer, prof.post_processing_timeout_s) == (observer, 3.0)
    assert (prof.custom_trace_id_callback, prof.activity_filters) == (observer.is_running, {cpu: {"CPU_OP"}})
    prof.preset_metadata_json("key", "[1]")
    assert prof.preset_metadata == {"key": "[1]"}
    plain = api.profile(activities=(activity for activity in [cpu]))
    assert (plain.record_steps, plain.schedule(3), plain.activity_filters) == (
        False,
        api.ProfilerAction.RECORD,
        {},
    )
    assert (plain.execution_trace_observer, plain.post_processing_timeout_s) == (None, None)


def test_lists_take_torchs_events() -> None:
    expected = profiled(torch.profiler, record_shapes=True, profile_memory=True).events()
    listed = EventList(expected, profile_memory=True)
    assert listed.table() == expected.table()
    assert listed.key_averages(compat="torch").table() == expected.key_averages().table()
    assert [repr(event) for event in listed] == [repr(event) for event in expected]
    around = EventList(expected[1:2])[0].cpu_parent
    assert around is not None
    assert around.name == "load"
    assert [event.device_type for event in listed] == [event.device_type for event in expected]


@BOTH
def test_a_range_says_whether_its_exit_ends_it(api: Any) -> None:
    future: Any = torch.futures.Future()
    with api.record_function("request") as scope:
        before = scope.run_callbacks_on_exit
        after = scope._call_end_callbacks_on_future(future)
        assert (before, scope.run_callbacks_on_exit) == (True, False)
    future.set_result(1)
    assert after.wait() == 1
