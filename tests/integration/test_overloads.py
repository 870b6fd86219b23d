"""Overloads of torch's ops: recorded on request, and shown by events, rows, tables and traces."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof import _ExperimentalConfig, profile, record_function

pytestmark = pytest.mark.usefixtures("torch")


def profiled(torch: Any, *, asked: bool = True, **options: Any) -> profile:
    ones = torch.ones(2, 3)
    config = _ExperimentalConfig(capture_overload_names=asked)
    with profile(experimental_config=config, **options) as prof, record_function("range"):
        ones + ones
        ones + 1
        torch.add(ones, ones, out=torch.empty(2, 3))
        torch.add(ones, ones, out=torch.empty(2, 3))
        ones.transpose(0, 1)
    return prof


ALL = [
    ("range", ""),
    ("aten::add", "Tensor"),
    ("aten::add", "Tensor"),
    ("aten::empty", "memory_format"),
    ("aten::add", "out"),
    ("aten::empty", "memory_format"),
    ("aten::add", "out"),
    ("aten::transpose", "int"),
]


def told_by(prof: profile) -> list[tuple[str, str | None]]:
    shown = {name for name, _ in ALL}
    return [(event.name, event.overload_name) for event in prof.events() if event.name in shown]


@pytest.mark.parametrize("with_shapes", [False, True])
def test_overloads_are_recorded_when_asked_for(torch: Any, with_shapes: bool) -> None:
    assert told_by(profiled(torch, record_shapes=with_shapes)) == ALL
    assert told_by(profiled(torch, asked=False, record_shapes=with_shapes)) == [(name, "") for name, _ in ALL]


def test_overloads_leave_shapes_unchanged(torch: Any) -> None:
    def shapes(*, asked: bool) -> list[Any]:
        prof = profiled(torch, asked=asked, record_shapes=True, profile_memory=True)
        return [(event.name, event.input_shapes, event.concrete_inputs) for event in prof.events()]

    assert shapes(asked=True) == shapes(asked=False)
    assert ("aten::transpose", [[2, 3], [], []], [None, 0, 1]) in shapes(asked=True)


def test_rows_and_table_split_overloads(torch: Any) -> None:
    prof = profiled(torch)
    rows = prof.key_averages(group_by_overload_name=True)
    adds = [(row.overload_name, row.count) for row in rows if row.key == "aten::add"]
    assert adds == [("Tensor", 2), ("out", 2)]
    assert "Overload Name" in rows.table()
    together = prof.key_averages()
    assert [(row.overload_name, row.count) for row in together if row.key == "aten::add"] == [("", 4)]
    assert "Overload Name" not in together.table()


@pytest.mark.parametrize("with_shapes", [False, True])
def test_trace_names_ops_with_their_overload(torch: Any, tmp_path: Path, with_shapes: bool) -> None:
    profiled(torch, record_shapes=with_shapes).export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = [event["name"] for event in events if event.get("cat") in ("cpu_op", "user_annotation")]
    expected = [f"{name}.{overload}" if overload else name for name, overload in ALL]
    assert [name for name in names if name in expected] == expected
    transposed = next(event for event in events if event["name"] == "aten::transpose.int")
    assert transposed["args"].get("Input Dims") == ([[2, 3], [], []] if with_shapes else None)
