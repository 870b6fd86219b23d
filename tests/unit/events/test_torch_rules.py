"""What `compat="torch"` counts."""

from collections.abc import Sequence

import pytest
from support.kineto.forests import HandMadeRecording, Span

from pytest_opprof.events.event_list import EventList
from pytest_opprof.events.names import filter_name


def torch_rows(spans: Sequence[Span], *, trace_end_ns: int = 0) -> dict[str, tuple[int, int, int]]:
    """Count, total and self time by key."""
    events = EventList([HandMadeRecording(list(spans), trace_end_ns=trace_end_ns)])
    return {
        row.key: (row.count, row.cpu_time_total_ns, row.self_cpu_time_total_ns)
        for row in events.key_averages(compat="torch")
    }


def test_only_child_of_its_name_is_swallowed() -> None:
    rows = torch_rows(
        [
            Span(name="aten::mul", start_ns=0, end_ns=9_000),
            Span(name="aten::mul", start_ns=1_000, end_ns=8_000),
            Span(name="aten::to", start_ns=2_000, end_ns=3_000),
        ]
    )
    assert rows == {"aten::mul": (1, 9_000, 8_000), "aten::to": (1, 1_000, 1_000)}


def test_swallowing_continues_downwards() -> None:
    chain = [Span(name="aten::mul", start_ns=i * 1_000, end_ns=20_000 - i * 1_000) for i in range(4)]
    assert torch_rows(chain) == {"aten::mul": (1, 20_000, 20_000)}


def test_one_of_two_children_is_not_swallowed() -> None:
    rows = torch_rows(
        [
            Span(name="aten::mul", start_ns=0, end_ns=9_000),
            Span(name="aten::mul", start_ns=1_000, end_ns=3_000),
            Span(name="aten::to", start_ns=4_000, end_ns=5_000),
        ]
    )
    assert rows["aten::mul"] == (2, 11_000, 8_000)


HIDDEN_NAMES = (
    "[memory]",
    "profiler::_record_function_enter",
    "profiler::_record_function_enter_new",
    "profiler::_record_function_exit",
    "aten::is_leaf",
    "aten::output_nr",
    "aten::_version",
)


@pytest.mark.parametrize("name", HIDDEN_NAMES)
def test_hidden_op_hands_its_children_up(name: str) -> None:
    assert filter_name(name)
    rows = torch_rows(
        [
            Span(name="aten::sum", start_ns=0, end_ns=9_000),
            Span(name=name, start_ns=1_000, end_ns=5_000),
            Span(name="aten::add", start_ns=2_000, end_ns=3_000),
        ]
    )
    assert rows == {"aten::sum": (1, 9_000, 8_000), "aten::add": (1, 1_000, 1_000)}


def test_async_event_has_total_time_only() -> None:
    rows = torch_rows(
        [
            Span(name="outer", start_ns=0, end_ns=9_000),
            Span(name="request", start_ns=1_000, end_ns=8_000, is_async=True),
            Span(name="inner", start_ns=2_000, end_ns=3_000),
        ]
    )
    assert rows == {"outer": (1, 9_000, 8_000), "request": (1, 7_000, 0), "inner": (1, 1_000, 1_000)}


def test_unfinished_event_counts_to_the_end_as_async() -> None:
    spans = [
        Span(name="open", start_ns=1_000, end_ns=9_000, is_unfinished=True),
        Span(name="inner", start_ns=2_000, end_ns=3_000),
    ]
    assert torch_rows(spans, trace_end_ns=9_000) == {"open": (1, 8_000, 0), "inner": (1, 1_000, 1_000)}
    (row, _) = EventList([HandMadeRecording(spans, trace_end_ns=9_000)]).key_averages(compat="torch")
    assert row.is_async


def test_background_threads_are_among_the_rest() -> None:
    rows = torch_rows(
        [
            Span(name="aten::add", start_ns=0, end_ns=1_000),
            Span(name="aten::add", start_ns=500, end_ns=2_500, thread=1, is_background=True),
        ]
    )
    assert rows == {"aten::add": (2, 3_000, 3_000)}


def test_compat_table_does_not_report_losses() -> None:
    events = EventList([HandMadeRecording([Span(name="a", start_ns=0, end_ns=1_000)], dropped=3)])
    assert "not recorded" not in events.key_averages(compat="torch").table()
