"""Keyword arguments of torch.compile's and Triton's launches, without torch's profiler."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof import EventList, FunctionEvent, _ExperimentalConfig, profile

GIVEN: dict[str, Any] = {
    "kernel_backend": "triton",
    "kernel_file": 'a "quoted"/é.py',
    "stream": 3,
    "wide": -(2**62),
    "ratio": 0.5,
    "autotuned": True,
    "nothing": None,
    "shape": [1, 2],
    "signature": ["*fp32", 'a "quoted"\nline'],
}


@pytest.fixture(autouse=True)
def torch() -> Iterator[Any]:
    """Torch, without a profiler left on afterwards."""
    module = pytest.importorskip("torch")
    yield module
    assert not module.autograd._profiler_enabled()


def launched(torch: Any, given: dict[str, Any], **options: Any) -> profile:
    with (
        profile(**options) as prof,
        torch._C._profiler._RecordFunctionFast("launch", [torch.ones(2, 3), 7], given),
    ):
        pass
    return prof


def launch_of(events: EventList) -> FunctionEvent:
    return next(event for event in events if event.name == "launch")


def trace_args(prof: profile, path: Path) -> dict[str, Any]:
    prof.export_chrome_trace(path)
    rows = json.loads(path.read_text())["traceEvents"]
    args: dict[str, Any] = next(row["args"] for row in rows if row["name"] == "launch")
    return args


def test_keywords_are_kept_with_shapes(torch: Any, tmp_path: Path) -> None:
    prof = launched(torch, GIVEN, record_shapes=True)
    event = launch_of(prof.events())
    assert event.kwinputs == GIVEN
    assert event.input_shapes == [[2, 3], []]
    args = trace_args(prof, tmp_path / "trace.json")
    assert {key: args[key] for key in GIVEN} == GIVEN
    assert args["Input Dims"] == [[2, 3], []]


def test_nothing_is_kept_without_shapes(torch: Any, tmp_path: Path) -> None:
    """Torch does not report them then, and its own profiler keeps none."""
    prof = launched(torch, GIVEN)
    assert not launch_of(prof.events()).kwinputs
    assert trace_args(prof, tmp_path / "trace.json").keys().isdisjoint(GIVEN)


def test_keywords_and_overloads_are_recorded_together(torch: Any) -> None:
    config = _ExperimentalConfig(capture_overload_names=True)
    prof = launched(torch, {"grid": 1}, record_shapes=True, experimental_config=config)
    assert launch_of(prof.events()).kwinputs == {"grid": 1}
    assert {event.overload_name for event in prof.events()} > {""}


def test_non_numbers_become_text_in_a_trace(torch: Any, tmp_path: Path) -> None:
    prof = launched(torch, {"ratio": math.inf, "ratios": [math.nan]}, record_shapes=True)
    args = trace_args(prof, tmp_path / "trace.json")
    assert (args["ratio"], args["ratios"]) == ("inf", ["nan"])


def test_oversized_keywords_are_left_out(torch: Any) -> None:
    given = {"kept": 1, **{f"key {i:03}": "x" * 50 for i in range(100)}, "long": "x" * 5000}
    kept = launch_of(launched(torch, given, record_shapes=True).events()).kwinputs
    assert kept is not None
    assert 5 < len(kept) < 100
    assert "long" not in kept
    assert launch_of(launched(torch, {"n": 1}, record_shapes=True).events()).input_shapes == [[2, 3], []]


def test_rows_by_shape_ignore_keywords(torch: Any) -> None:
    with profile(record_shapes=True) as prof:
        for stream in range(2):
            with torch._C._profiler._RecordFunctionFast("launch", [torch.ones(2)], {"stream": stream}):
                pass
    rows = [row for row in prof.key_averages(group_by_input_shape=True) if row.key == "launch"]
    assert [(row.count, row.input_shapes) for row in rows] == [(2, [[2]])]


def test_torch_sees_a_profiler_only_with_shapes(torch: Any) -> None:
    seen = []
    for record_shapes in (True, False):
        with profile(record_shapes=record_shapes):
            torch.ones(2)
            seen.append(torch.autograd._profiler_enabled())
        seen.append(torch.autograd._profiler_enabled())
    assert seen == [True, False, False, False]
