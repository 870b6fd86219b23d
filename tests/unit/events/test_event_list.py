"""Event lists: one object per event, created on demand, nested as recorded."""

import gc
import weakref
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from support.kineto.forests import HandMadeRecording, Span, forests

from pytest_opprof.capture.window import StepInfo
from pytest_opprof.errors import UsageError
from pytest_opprof.events.event_list import EventList
from pytest_opprof.profiler.emit import emit_nvtx

NAMES = ("aten::add", "aten::mul", "forward")


def nested() -> Any:
    """A step with two ops inside, one of which calls another, and one op on a second thread."""
    return HandMadeRecording(
        [
            Span(name="ProfilerStep#3", start_ns=0, end_ns=10_000, scope=7, step=0),
            Span(name="aten::linear", start_ns=1_000, end_ns=6_000, step=0, shapes=[[2, 3], [[4], [5]], []]),
            Span(name="aten::addmm", start_ns=2_000, end_ns=5_000, step=0),
            Span(name="aten::relu", start_ns=7_000, end_ns=8_500, step=0, sequence_nr=4),
            Span(name="aten::copy_", start_ns=1_500, end_ns=9_000, thread=1),
        ],
        steps=(StepInfo(number=3, start_ns=0, end_ns=10_000),),
    )


def test_events_come_in_order_of_start() -> None:
    events = EventList([nested()])
    assert [event.name for event in events] == [
        "ProfilerStep*",
        "aten::linear",
        "aten::copy_",
        "aten::addmm",
        "aten::relu",
    ]


def test_indexing_works_like_a_sequence() -> None:
    events = EventList([nested()])
    assert len(events) == 5
    assert events[-1] is events[4]
    assert [event.name for event in events[1:3]] == ["aten::linear", "aten::copy_"]
    assert [event.id for event in events[::-1]] == [event.id for event in events][::-1]
    with pytest.raises(IndexError):
        events[5]


def test_same_event_is_the_same_object() -> None:
    events = EventList([nested()])
    step, linear = events[0], events[1]
    assert events[0] is step
    assert next(iter(events)) is step
    assert linear.cpu_parent is step
    assert step.cpu_children[0] is linear
    assert linear.cpu_children[0].cpu_parent is linear


def test_unreferenced_events_are_dropped() -> None:
    events = EventList([nested()])
    event = weakref.ref(events[0])
    gc.collect()
    assert event() is None


def test_nothing_is_made_before_it_is_asked_for(made_events: list[int]) -> None:
    events = EventList([nested()])
    assert len(events) == 5
    assert made_events == []
    assert events[1].name == "aten::linear"
    assert made_events == [1]


def test_step_keeps_its_number_in_the_trace_name() -> None:
    step = EventList([nested()])[0]
    assert (step.name, step.key, step.trace_name) == ("ProfilerStep*", "ProfilerStep*", "ProfilerStep#3")
    assert step.is_user_annotation
    assert step.step == 3


def test_times_are_microseconds_as_in_torch() -> None:
    linear = EventList([nested()])[1]
    assert (linear.time_range.start, linear.time_range.end) == (1.0, 6.0)
    assert linear.time_range.elapsed_us() == 5.0
    assert (linear.cpu_time_total, linear.self_cpu_time_total, linear.cpu_time) == (5.0, 2.0, 5.0)
    assert (linear.cpu_time_total_ns, linear.self_cpu_time_total_ns) == (5_000, 2_000)
    assert linear.cpu_time_total_str == "5.000us"


def test_child_time_leaves_parent_self_time() -> None:
    step = EventList([nested()])[0]
    assert step.self_cpu_time_total_ns == 10_000 - 5_000 - 1_500


def test_tensor_lists_are_flattened_as_torch_does() -> None:
    linear = EventList([nested()])[1]
    assert linear.structured_input_shapes == [[2, 3], [[4], [5]], []]
    assert linear.input_shapes == [[2, 3], [], []]
    assert linear.input_dtypes == ["float"] * 3


def test_unrecorded_inputs_are_empty() -> None:
    addmm = EventList([nested()])[3]
    assert (addmm.input_shapes, addmm.concrete_inputs, addmm.structured_input_strides) == ([], [], [])


def test_absent_values_match_torchs() -> None:
    copy = EventList([nested()])[2]
    assert (copy.sequence_nr, copy.fwd_thread, copy.node_id, copy.step) == (-1, 0, -1, None)
    assert (copy.kernels, copy.stack, copy.flops, copy.use_device) == ([], [], 0, None)
    assert (copy.thread, copy.device_resource_id) == (1, 1)


def test_async_event_has_no_parent_and_no_children() -> None:
    events = EventList(
        [
            HandMadeRecording(
                [
                    Span(name="outer", start_ns=0, end_ns=9_000),
                    Span(name="request", start_ns=1_000, end_ns=8_000, is_async=True),
                    Span(name="inner", start_ns=2_000, end_ns=3_000),
                ]
            )
        ]
    )
    outer, request, inner = events
    assert request.cpu_parent is None
    assert request.cpu_children == []
    assert inner.cpu_parent is outer
    assert outer.cpu_children == [inner]
    assert (request.cpu_time_total_ns, request.self_cpu_time_total_ns) == (7_000, 0)


def test_unfinished_event_reaches_to_the_windows_end() -> None:
    events = EventList(
        [
            HandMadeRecording(
                [Span(name="open", start_ns=1_000, end_ns=9_000, is_unfinished=True)], trace_end_ns=9_000
            )
        ]
    )
    assert events[0].is_unfinished
    assert events[0].time_range.end == 9.0
    assert events[0].cpu_time_total_ns == 0


def test_several_recordings_follow_one_another() -> None:
    first, second = nested(), nested()
    events = EventList([first, HandMadeRecording([]), second])
    assert len(events) == 10
    assert [event.name for event in events] == [event.name for event in EventList([first])] * 2
    assert events[5].trace_name == "ProfilerStep#3"
    assert events[5] is not events[0]


def test_empty_list_has_an_empty_table() -> None:
    assert EventList([]).table() == ""
    assert str(EventList([HandMadeRecording([])])) == ""
    assert EventList([]).self_cpu_time_total == 0


def test_deprecated_names_point_to_the_new_ones() -> None:
    event = EventList([nested()])[0]
    with pytest.warns(FutureWarning, match="please use `device_time_total`") as caught:
        assert event.cuda_time_total == 0
    assert caught[0].filename == __file__


@given(forests(NAMES))
def test_children_and_parents_agree(spans: list[Span]) -> None:
    events = EventList([HandMadeRecording(spans)])
    held = list(events)
    for event in held:
        for child in event.cpu_children:
            assert child.cpu_parent is event
        if event.cpu_parent is not None:
            assert event in event.cpu_parent.cpu_children
    assert sum(len(event.cpu_children) for event in held) == sum(
        event.cpu_parent is not None for event in held
    )


@given(forests(NAMES))
def test_self_times_sum_to_the_roots(spans: list[Span]) -> None:
    held = list(EventList([HandMadeRecording(spans)]))
    roots = [event for event in held if event.cpu_parent is None and not event.is_async]
    assert sum(event.self_cpu_time_total_ns for event in held) == sum(
        event.cpu_time_total_ns for event in roots
    )


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda events, path, **other: events.key_averages(**other), id="averages"),
        pytest.param(lambda events, path, **other: events.table(**other), id="table"),
        pytest.param(
            lambda events, path, **other: events.key_averages().table(**other), id="averages' table"
        ),
        pytest.param(lambda events, path, **other: events.export_stacks(path, **other), id="stacks"),
        pytest.param(lambda events, path, **other: emit_nvtx(**other), id="ranges"),
    ],
)
def test_unknown_compat_is_refused(call: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="compat is 'Torch'; use \"torch\""):
        call(EventList([nested()]), tmp_path / "stacks", compat="Torch")
    assert not list(tmp_path.iterdir())
