"""The model's lines behind the ops of a compiled graph."""

import sys
from typing import Any

import pytest

from pytest_opprof import map_recorded_events_to_aten_ops_with_stack_trace as map_events
from pytest_opprof.errors import UsageError

GRAPH = "/cache/graph.py"
REGISTRY: dict[str, Any] = {
    GRAPH: {
        "node_metadata": {
            0: {"name": "relu", "stack_trace": "model.py:3 relu(x)"},
            1: {"name": "add", "stack_trace": "model.py:4 x + y"},
            2: {"name": "nameless"},
            3: {},
        }
    }
}


def span(name: str, ts: float, dur: float, *, tid: int = 1, cat: str = "cpu_op") -> dict[str, Any]:
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "tid": tid, "cat": cat}


def marker(content: object, ts: float, dur: float, *, tid: int = 1) -> dict[str, Any]:
    return span(f"## {content} ##", ts, dur, tid=tid)


def mapped(*events: dict[str, Any], registry: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """The resulting arguments of the ops."""
    map_events({"traceEvents": list(events)}, registry=REGISTRY if registry is None else registry)
    return [event.get("args", {}) for event in events if not event["name"].startswith("##")]


def test_op_has_the_line_of_its_node() -> None:
    graph, first, second = marker(GRAPH, 0, 100), marker(0, 10, 20), marker(1, 40, 20)
    ops = [span("aten::relu", 12, 5), span("aten::add", 45, 5), span("aten::mm", 70, 5), span("out", 101, 1)]
    assert mapped(graph, first, second, *ops) == [
        {"stack_trace": "model.py:3 relu(x)", "node_name": "relu"},
        {"stack_trace": "model.py:4 x + y", "node_name": "add"},
        {},
        {},
    ]


def test_changed_events_are_given_by_name() -> None:
    op, kernel = span("aten::relu", 12, 5), span("triton_relu", 14, 5, cat="kernel")
    trace = {"traceEvents": [marker(GRAPH, 0, 100), marker(0, 10, 20), op, kernel, span("other", 50, 1)]}
    found = map_events(trace, registry=REGISTRY)
    assert list(found) == ["aten::relu", "triton_relu"]
    assert found["aten::relu"][0] is op


def test_arguments_that_were_there_stay() -> None:
    op = span("aten::relu", 12, 5) | {"args": {"Sequence number": 4}}
    (args,) = mapped(marker(GRAPH, 0, 100), marker(0, 10, 20), op)
    assert args["Sequence number"] == 4
    assert args["node_name"] == "relu"


@pytest.mark.parametrize("content", ["foo", "", "1.5", "model.pyc"])
def test_unrelated_markers_are_not_nodes(content: str) -> None:
    assert mapped(marker(GRAPH, 0, 100), marker(0, 1, 2), marker(content, 10, 20), span("op", 12, 1)) == [{}]


def test_markers_of_other_threads_end_no_node() -> None:
    here = [marker(GRAPH, 0, 100), marker(0, 10, 80)]
    there = [marker(GRAPH, 0, 100, tid=2), marker(0, 20, 5, tid=2)]
    op, other = span("op", 50, 1), span("op", 50, 1, tid=2)
    assert mapped(*here, *there, op, other) == [
        {"stack_trace": "model.py:3 relu(x)", "node_name": "relu"},
        {},
    ]


def test_innermost_node_counts() -> None:
    nested = [marker(GRAPH, 0, 100), marker(0, 10, 80), marker(1, 20, 20)]
    assert mapped(*nested, span("op", 25, 1))[0]["node_name"] == "add"
    assert mapped(*nested, span("op", 45, 1))[0]["node_name"] == "relu"
    empty = [marker(GRAPH, 0, 100), marker(0, 10, 80), marker(3, 20, 20)]
    assert mapped(*empty, span("op", 25, 1))[0]["node_name"] == "relu"


def test_node_without_a_line_says_so() -> None:
    assert mapped(marker(GRAPH, 0, 9), marker(2, 1, 5), span("op", 2, 1)) == [
        {"stack_trace": "No model stack trace available", "node_name": "nameless"}
    ]


def test_touching_nodes_are_distinguished() -> None:
    events = [
        span("op", 10, 1),
        span("op", 30, 1),
        marker(0, 10, 20),
        marker(GRAPH, 0, 100),
        marker(1, 30, 0),
    ]
    assert [args.get("node_name") for args in mapped(*events)] == ["relu", None]


def test_unknown_graphs_and_bare_nodes_have_no_lines() -> None:
    assert mapped(marker("/other.py", 0, 9), marker(0, 1, 5), span("op", 2, 1)) == [{}]
    assert mapped(marker(0, 1, 5), span("op", 2, 1)) == [{}]
    assert mapped(marker(GRAPH, 0, 9), marker(0, 1, 5), span("op", 2, 1), registry={GRAPH: {}}) == [{}]


def test_hostile_events_are_passed_over() -> None:
    events: list[dict[str, Any]] = [
        {"name": "no times"},
        {"name": 7, "ts": 1, "dur": 1, "cat": "cpu_op"},
        {"ts": 1, "dur": 1},
    ]
    assert map_events({"traceEvents": events}, registry=REGISTRY) == {}
    assert map_events({}, registry=REGISTRY) == {}


def test_without_torch_a_registry_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.fx.traceback", None)
    with pytest.raises(UsageError, match="is not imported in this process"):
        map_events({"traceEvents": []})
