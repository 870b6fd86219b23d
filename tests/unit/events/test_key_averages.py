"""Key averages: one row for each name, summed up by the collector."""

from typing import Any

import pytest
from hypothesis import given
from support.kineto.forests import HandMadeRecording, Span, forests

from pytest_opprof.events.event_list import EventList
from pytest_opprof.events.function_event_avg import FunctionEventAvg

NAMES = ("aten::add", "aten::mul", "aten::is_leaf", "ProfilerStep#1")


def spans() -> list[Span]:
    return [
        Span(name="forward", start_ns=0, end_ns=10_000, scope=7),
        Span(name="aten::mul", start_ns=1_000, end_ns=3_000, shapes=[[2, 3]]),
        Span(name="aten::mul", start_ns=4_000, end_ns=5_000, shapes=[[7]]),
        Span(name="aten::add", start_ns=6_000, end_ns=9_000),
    ]


def rows_of(events: EventList, **options: bool) -> dict[str, tuple[int, int, int]]:
    return {
        row.key: (row.count, row.cpu_time_total_ns, row.self_cpu_time_total_ns)
        for row in events.key_averages(**options)  # type: ignore[arg-type]  # only switches are given
    }


def test_events_of_one_name_are_one_row() -> None:
    assert rows_of(EventList([HandMadeRecording(spans())])) == {
        "forward": (1, 10_000, 4_000),
        "aten::mul": (2, 3_000, 3_000),
        "aten::add": (1, 3_000, 3_000),
    }


def test_averages_create_no_event_objects(made_events: list[int]) -> None:
    recording = HandMadeRecording(spans())
    EventList([recording]).key_averages()
    assert recording.group_calls == 1
    assert len(made_events) == 3  # the first of each row


def test_shapes_split_the_rows() -> None:
    rows = EventList([HandMadeRecording(spans())]).key_averages(group_by_input_shapes=True)
    assert [(row.key, row.input_shapes) for row in rows] == [
        ("forward", []),
        ("aten::mul", [[2, 3]]),
        ("aten::mul", [[7]]),
        ("aten::add", []),
    ]


def test_range_and_op_of_one_name_stay_apart() -> None:
    same = [
        Span(name="aten::add", start_ns=0, end_ns=1_000, scope=7),
        Span(name="aten::add", start_ns=2_000, end_ns=3_000),
    ]
    rows = EventList([HandMadeRecording(same)]).key_averages()
    assert [(row.key, row.is_user_annotation, row.count) for row in rows] == [
        ("aten::add", True, 1),
        ("aten::add", False, 1),
    ]


def test_background_threads_have_a_row_of_their_own() -> None:
    both = [
        Span(name="aten::add", start_ns=0, end_ns=1_000),
        Span(name="aten::add", start_ns=500, end_ns=2_500, thread=1, is_background=True),
    ]
    rows = EventList([HandMadeRecording(both)]).key_averages()
    assert [(row.key, row.name, row.is_background, row.count) for row in rows] == [
        ("aten::add", "aten::add", False, 1),
        ("aten::add (background)", "aten::add", True, 1),
    ]


def test_recordings_are_merged_by_key() -> None:
    events = EventList([HandMadeRecording(spans()), HandMadeRecording(spans()[1:])])
    assert rows_of(events)["aten::mul"] == (4, 6_000, 6_000)


def test_row_takes_its_caller_from_the_first_event() -> None:
    events = EventList([HandMadeRecording(spans())])
    forward, mul, _ = events.key_averages()
    assert mul.cpu_parent is not None
    assert mul.cpu_parent.name == "forward"
    assert forward.cpu_parent is None
    assert [child.name for child in forward.cpu_children] == ["aten::mul", "aten::mul", "aten::add"]


def test_total_sums_every_row() -> None:
    events = EventList([HandMadeRecording(spans())])
    total = events.total_average()
    assert (total.key, total.count, total.cpu_time_total) == ("Total", 4, 16.0)
    assert total.self_cpu_time_total == events.self_cpu_time_total == 10.0
    assert events.key_averages().self_cpu_time_total == 10.0


def test_averages_of_one_key_add_up() -> None:
    events = EventList([HandMadeRecording(spans())])
    row = FunctionEventAvg(key="aten::mul", name="aten::mul")
    row += events[1]
    row += events.key_averages()[1]
    assert (row.count, row.cpu_time_total_ns, row.cpu_time) == (3, 5_000, 5 / 3)


def test_averages_of_other_keys_are_refused() -> None:
    events = EventList([HandMadeRecording(spans())])
    with pytest.raises(AssertionError, match="got forward vs aten::mul"):
        events.key_averages()[1].add(events[0])


def test_empty_average_has_no_time_per_call() -> None:
    assert FunctionEventAvg(key="x", name="x").cpu_time == 0.0


LOSSES: dict[str, Any] = {
    "dropped": (12, "Events not recorded: 12 (they are missing from this table)"),
    "truncated": (True, "The recording was cut off when its byte budget was used up"),
    "names_overflowed": (3, "Too many names: 3 events share the name (overflow)"),
    "device_dropped": (4, "CUDA is incomplete: 4 device records were dropped"),
    "device_partial": (True, "CUDA is incomplete: CUPTI delivered only some of the device records"),
}


@pytest.mark.parametrize("field", LOSSES)
def test_losses_stand_below_both_tables(field: str) -> None:
    value, sentence = LOSSES[field]
    lossy: dict[str, Any] = {field: value}
    events = EventList([HandMadeRecording(spans(), **lossy)])
    for table in (events.table(), events.key_averages().table()):
        assert table.endswith(f"Self CPU time total: 10.000us\n{sentence}\n")


@given(forests(NAMES))
def test_rows_sum_to_the_events(made_up: list[Span]) -> None:
    events = EventList([HandMadeRecording(made_up)])
    total = events.key_averages().total_average()
    assert total.count == len(events)
    assert total.cpu_time_total_ns == sum(event.cpu_time_total_ns for event in events)
    assert total.self_cpu_time_total_ns == sum(event.self_cpu_time_total_ns for event in events)
