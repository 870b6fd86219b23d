"""_RecordFunctionFast: an op with values, under torch's private name."""

import copy
import gc
import json
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_opprof import _RecordFunctionFast, profile


def recorded(op: _RecordFunctionFast, tmp_path: Path) -> dict[str, Any]:
    """The op in a trace."""
    with profile() as prof, op:
        pass
    (event,) = prof.events()
    assert not event.is_user_annotation
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(path)
    (row,) = (row for row in json.loads(path.read_text())["traceEvents"] if row["name"] == event.name)
    assert row["cat"] == "cpu_op"
    args: dict[str, Any] = row["args"]
    return args


def test_name_alone_is_recorded(tmp_path: Path) -> None:
    assert "Input Dims" not in recorded(_RecordFunctionFast("triton"), tmp_path)


def test_named_values_are_kept(tmp_path: Path) -> None:
    values = {
        "grid": 7,
        "wide": 2**80,
        "ratio": 0.5,
        "stream": True,
        "kernel_file": 'a "quoted"/é.py',
        "backends": ["triton", "ünï"],
    }
    args = recorded(_RecordFunctionFast("triton", keyword_values=values), tmp_path)
    assert {key: args[key] for key in values} == values | {"wide": float(2**80)}


def test_inputs_are_kept(tmp_path: Path) -> None:
    op = _RecordFunctionFast("triton", input_values=[np.zeros((2, 3), np.float32), 4, "text"])
    args = recorded(op, tmp_path)
    assert args["Input Dims"] == [[2, 3], [], []]
    assert args["Input type"] == ["float32", "Scalar", ""]
    assert args["Concrete Inputs"] == ["", "4", ""]


def test_other_values_are_left_out_with_a_warning(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="triton: the value of 'grid' is left out: it is tuple"):
        op = _RecordFunctionFast("triton", None, {"grid": (1, 2), "kept": 1})
    args = recorded(op, tmp_path)
    assert "grid" not in args
    assert args["kept"] == 1


def test_values_past_the_room_are_left_out(tmp_path: Path) -> None:
    args = recorded(_RecordFunctionFast("triton", None, {f"key {i}": "x" * 50 for i in range(100)}), tmp_path)
    kept = [key for key in args if key.startswith("key ")]
    assert 5 < len(kept) < 100


def test_two_threads_may_hold_one_open() -> None:
    op = _RecordFunctionFast("triton", None, {"n": 1})
    with profile() as prof, op, op:
        pass
    assert [event.name for event in prof.events()] == ["triton", "triton"]


def test_its_arguments_are_released_with_it() -> None:
    class Held:
        shape = ()

    held = Held()
    op = _RecordFunctionFast("triton", (held,), {"n": 1})
    held.op = op  # type: ignore[attr-defined]  # a circle through the op
    gone = weakref.ref(held)
    del held, op
    gc.collect()
    assert gone() is None


def test_an_input_that_cannot_be_read_raises_once_it_is_recorded() -> None:
    class Broken:
        @property
        def shape(self) -> tuple[int, ...]:
            raise ValueError("no shape")

    op = _RecordFunctionFast("triton", [Broken()])
    with op:
        pass
    with profile() as prof:
        with pytest.raises(ValueError, match="no shape"):
            op.__enter__()
        with op:
            pass
    assert [event.name for event in prof.events()] == ["triton"]


def test_long_lists_are_left_out(tmp_path: Path) -> None:
    args = recorded(_RecordFunctionFast("triton", [1] * 2_000, {"files": ["é" * 2_000], "n": 1}), tmp_path)
    assert args["n"] == 1
    assert args.keys().isdisjoint({"Input Dims", "files"})


@pytest.mark.parametrize(
    ("given", "error"),
    [((), "name"), ((1,), "must be str, not int"), (("x", 3), "input_values: a list or tuple is needed")],
)
def test_none_arguments_are_accepted(given: tuple[Any, ...], error: str) -> None:
    with pytest.raises(TypeError, match=error):
        _RecordFunctionFast(*given)


def test_a_subclass_may_have_arguments_of_its_own(tmp_path: Path) -> None:
    class Launch(_RecordFunctionFast):
        def __init__(self, grid: int) -> None:
            super().__init__("launch", keyword_values={"grid": grid})

    assert recorded(Launch(7), tmp_path)["grid"] == 7


def test_a_copy_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot pickle"):
        copy.deepcopy(_RecordFunctionFast("triton", [1]))
