"""Event lists built from events: nested on request, changed like any list."""

from typing import Any

import pytest
from support.kineto.forests import HandMadeRecording, Span

from pytest_opprof import EventList, FunctionEvent


def event(name: str, start_us: float, end_us: float, **known: Any) -> FunctionEvent:
    arguments: dict[str, Any] = {"id": 1, "thread": 1, "stack": [], **known}
    return FunctionEvent(name=name, start_us=start_us, end_us=end_us, **arguments)


def built(*events: FunctionEvent) -> EventList:
    made = EventList(events)
    made._build_tree()
    return made


def parents(events: EventList) -> dict[str, str | None]:
    return {event.name: event.cpu_parent.name if event.cpu_parent else None for event in events}


def test_contained_event_is_a_child() -> None:
    events = built(
        event("outer", 0, 10), event("inner", 1, 5), event("same end", 5, 10), event("next", 10, 11)
    )
    assert parents(events) == {"outer": None, "inner": "outer", "same end": "outer", "next": None}


def test_partial_overlap_is_not_a_child() -> None:
    events = built(event("first", 0, 10), event("second", 5, 15), event("third", 6, 7))
    assert parents(events) == {"first": None, "second": None, "third": "second"}


@pytest.mark.parametrize(
    "apart", [{"thread": 2}, {"node_id": 3}, {"is_async": True}], ids=["thread", "node", "async"]
)
def test_other_threads_and_nodes_have_no_parent_here(apart: dict[str, Any]) -> None:
    events = built(event("outer", 0, 10), event("inner", 1, 5, **apart))
    assert parents(events) == {"outer": None, "inner": None}


def test_nesting_twice_is_refused() -> None:
    events = built(event("outer", 0, 10), event("inner", 1, 5))
    with pytest.raises(AssertionError, match="There is already a CPU parent event for inner"):
        events._build_tree()


def test_repeat_lifts_its_children_and_kernels() -> None:
    outer, inner, below = event("aten::mul", 0, 10), event("aten::mul", 1, 9), event("aten::to", 2, 3)
    outer.append_kernel("lost", 0, 1.0)
    inner.append_kernel("kept", 0, 2.0)
    events = built(outer, inner, below)
    assert list(events) == [outer, below]
    assert below.cpu_parent is outer
    assert outer.cpu_children == [below]
    assert [kernel.name for kernel in outer.kernels] == ["kept"]


def test_backward_ops_have_the_stack_of_their_forward() -> None:
    forward = event("aten::mm", 0, 10, sequence_nr=4, stack=["model.py(3): forward"])
    wrapper = event("evaluate_function", 20, 40, thread=2, stack=["autograd"])
    node = event("MmBackward0", 21, 39, thread=2, scope=1, sequence_nr=4, fwd_thread=1, stack=["x"])
    inside = event("aten::t", 22, 30, thread=2, stack=["y"])
    built(forward, wrapper, node, inside)
    assert node.stack == inside.stack == ["model.py(3): forward"]
    assert wrapper.stack == ["autograd"]


def test_backward_op_without_its_forward_has_no_stack() -> None:
    node = event("MmBackward0", 0, 10, scope=1, sequence_nr=4, fwd_thread=1, stack=["x"])
    built(node)
    assert node.stack == []
    with pytest.raises(AssertionError, match="Expected fwd_thread"):
        built(event("MmBackward0", 0, 10, scope=1))


def test_compat_sums_need_a_tree() -> None:
    events = EventList([event("a", 0, 10)])
    with pytest.raises(AssertionError, match="Expected tree to be built"):
        events.key_averages(compat="torch")
    assert [row.key for row in events.key_averages()] == ["a"]


def test_a_list_can_be_changed() -> None:
    first, second = event("a", 0, 1), event("b", 2, 3)
    events = EventList([first])
    events.append(second)
    events.sort(key=lambda event: event.name, reverse=True)
    assert list(events) == [second, first]
    events[0] = first
    del events[1]
    events.insert(0, second)
    assert events[:] == [second, first]
    assert events.self_cpu_time_total == 2


def test_changing_a_recorded_list_keeps_its_events() -> None:
    events = EventList([HandMadeRecording([Span(name="a", start_ns=0, end_ns=1_000)])])
    events.append(event("b", 1, 3))
    assert [event.name for event in events] == ["a", "b"]
    assert {row.key: row.cpu_time_total for row in events.key_averages()} == {"a": 1.0, "b": 2.0}


def test_averages_can_be_listed() -> None:
    rows = EventList([event("b", 0, 1), event("a", 0, 2)]).key_averages()
    table = EventList(sorted(rows, key=lambda row: str(row.key))).table()
    assert [line.split()[0] for line in table.splitlines()[3:5]] == ["a", "b"]


@pytest.mark.parametrize(
    ("option", "title"), [("profile_memory", "CPU Mem"), ("with_flops", "Total FLOPs"), ("use_device", None)]
)
def test_options_of_a_list_change_its_table(option: str, title: str | None) -> None:
    def table(**options: Any) -> str:
        return EventList([event("a", 0, 1, flops=7)], **options).key_averages().table()

    if title is None:
        assert EventList([event("a", 0, 1)], use_device="cuda")._use_device == "cuda"
    else:
        assert title in table(**{option: True})
        assert title not in table()


def test_torchs_arguments_of_a_table_may_be_given_by_place() -> None:
    events = EventList([event("a", 0, 1), event("b", 0, 2)])
    assert events.table("count", 1, 75, 20, 80, "a header", False, "s").startswith("=")


def test_a_table_notes_each_rows_share_in_it() -> None:
    events = EventList([event("a", 0, 1), event("b", 0, 3)])
    assert (events[0].self_cpu_percent, events[0].total_device_percent) == (-1, -1)
    events.table()
    assert [(row.self_cpu_percent, row.total_cpu_percent) for row in events] == [
        ("25.00%",) * 2,
        ("75.00%",) * 2,
    ]


def test_total_is_of_all_events() -> None:
    total = EventList([event("a", 0, 1), event("b", 0, 2, device_index=3)]).total_average()
    assert (total.key, total.count, total.cpu_time_total) == ("Total", 2, 3)


@pytest.mark.parametrize(
    ("grouping", "differs"),
    [
        ({"group_by_input_shapes": True}, {"input_shapes": [[2]]}),
        ({"group_by_stack_n": 1}, {"stack": ["f"]}),
        ({"group_by_overload_name": True}, {"overload_name": "out"}),
    ],
    ids=["shapes", "stack", "overload"],
)
def test_each_grouping_splits_differing_events(grouping: dict[str, Any], differs: dict[str, Any]) -> None:
    events = EventList([event("a", 0, 1), event("a", 2, 3, **differs)])
    assert len(events.key_averages()) == 1
    assert len(events.key_averages(**grouping)) == 2
