"""The lines behind the ops of a compiled graph, against torch's own function where that is right."""

import copy
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_opprof import map_recorded_events_to_aten_ops_with_stack_trace as map_events

torch = pytest.importorskip("torch")
from torch.fx import traceback  # noqa: E402  # only where torch is
from torch.profiler import _utils  # noqa: E402  # the same

if not hasattr(traceback, "_FX_METADATA_REGISTRY"):
    pytest.skip("this torch has no such markers", allow_module_level=True)

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


def nested_events(seed: int) -> list[dict[str, Any]]:
    """Nested markers and ops in any order, no two of which start or end at the same time."""
    dice = random.Random(seed)  # noqa: S311  # no secret
    clock = iter(range(10_000))
    events: list[dict[str, Any]] = []

    def fill(depth: int) -> None:
        for _ in range(dice.randrange(4)):
            name = dice.choice((f"## {GRAPH} ##", f"## {dice.randrange(5)} ##", "aten::op"))
            event: dict[str, Any] = {"name": name, "ts": next(clock), "tid": 1, "cat": "cpu_op"}
            events.append(event)
            if depth < 4:
                fill(depth + 1)
            event["dur"] = next(clock) - event["ts"]

    fill(0)
    dice.shuffle(events)
    return events


@given(st.integers(0, 2**32))
def test_nested_markers_match_torchs_lines(seed: int) -> None:
    ours = {"traceEvents": nested_events(seed)}
    wanted = copy.deepcopy(ours)
    traceback._FX_METADATA_REGISTRY.update(REGISTRY)
    try:
        _utils.map_recorded_events_to_aten_ops_with_stack_trace(wanted)
        map_events(ours)  # with torch's registry, because none is given
    finally:
        traceback._FX_METADATA_REGISTRY.pop(GRAPH)
    assert ours == wanted


def test_random_nested_markers_have_lines() -> None:
    found = [map_events({"traceEvents": nested_events(seed)}, registry=REGISTRY) for seed in range(200)]
    assert sum(map(bool, found)) > 20
