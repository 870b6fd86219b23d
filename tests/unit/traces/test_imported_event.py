"""Fields of an event that a file has beyond the columns."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof import FunctionEvent, load_trace


def only_event(tmp_path: Path, args: Any, **members: Any) -> FunctionEvent:
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 5, "args": args}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([event | members]))
    return load_trace(path).events()[0]


def test_metadata_of_a_kernel_is_typed(tmp_path: Path) -> None:
    args = {
        "External id": 17,
        "device": 0,
        "stream": 7,
        "grid": [4, 1, 1],
        "warps per SM": 1.5,
        "Process Group Name": "default",
        "Is asynchronized op": True,
    }
    event = only_event(tmp_path, args, cat="kernel")
    known = event.event_metadata
    assert known is not None
    assert (known.stream, known.grid, known.warps_per_sm, known.block) == (7, [4, 1, 1], 1.5, None)
    assert (known.process_group_name, known.is_async, event.external_id) == ("default", True, 17)


def test_value_of_another_type_is_not_known(tmp_path: Path) -> None:
    known = only_event(tmp_path, {"stream": "seven", "registers per thread": 3}).event_metadata
    assert known is not None
    assert (known.stream, known.registers_per_thread) == (None, 3)


def test_call_stack_becomes_the_stack(tmp_path: Path) -> None:
    event = only_event(tmp_path, {"Call stack": "model.py(3): f;train.py(9): main"})
    assert event.stack == ["model.py(3): f", "train.py(9): main"]


@pytest.mark.parametrize(
    "args", [{}, {"External id": "x", "Call stack": 3, "Python id": None}], ids=["none", "odd"]
)
def test_unknown_values_are_neutral(tmp_path: Path, args: dict[str, Any]) -> None:
    event = only_event(tmp_path, args)
    assert (event.event_metadata, event.external_id, event.stack, event.python_id) == (None, 0, [], -1)


def test_numbers_of_python_calls_are_kept(tmp_path: Path) -> None:
    args = {"Python id": 4, "Python parent id": 3, "Python module id": 2}
    event = only_event(tmp_path, args, cat="python_function")
    assert (event.python_id, event.python_parent_id, event.python_module_id) == (4, 3, 2)
