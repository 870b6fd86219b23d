"""Traces of other people's programs on real accelerators: read, written again, and read once more."""

import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.html.perfetto import perfetto

from pytest_opprof import load_trace
from pytest_opprof.analysis.collectives import collectives
from pytest_opprof.analysis.device_time import DeviceTimes
from pytest_opprof.errors import DocumentError
from pytest_opprof.kinds import EventKind
from pytest_opprof.traces.imported_recording import ImportedRecording

# What each file has, counted in it by its category: work of the host, work of devices.
FILES = {
    "alexnet_inference_cuda.json.gz": (728, 139),
    "backward_thread.json": (6, 1),
    "event_sync_multi_stream_cuda.json.gz": (45, 11),
    "minitoy_training_rocm.json.gz": (94, 18),
    "nccl_training_rank0_cuda.json.gz": (23128, 3804),
    "sampled_training_cuda.json.gz": (3606, 1204),
    "simple_add_cuda.json.gz": (51, 4),
    "triton_kernel_cuda.json.gz": (6, 1),
}
NO_TRACES = {
    "simple_add_execution_trace.json.gz": "it has no traceEvents",
    "torch_basic_evaluation_events.json": "byte 1: an event that is no object",
}
COLUMNS = (
    "start_ns",
    "duration_ns",
    "self_ns",
    "sequence_nr",
    "forward_thread",
    "name_id",
    "thread",
    "parent",
    "step",
    "launcher",
    "kind",
    "flags",
    "scope",
)


def columns(recording: ImportedRecording) -> dict[str, list[int]]:
    return {name: list(getattr(recording, name)) for name in COLUMNS}


def as_decimals(path: Path) -> Any:
    """The file as Python reads it, every number by its decimal text."""
    data = path.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def event_counts(document: Any) -> Counter[str]:
    """How often each event occurs, whatever its order among the events and its members' among themselves."""
    return Counter(repr(sorted(_normal(event).items())) for event in document["traceEvents"])


def _normal(value: Any) -> Any:
    if isinstance(value, Decimal):
        return value.normalize()
    if isinstance(value, dict):
        return {key: _normal(value[key]) for key in sorted(value)}
    return [_normal(entry) for entry in value] if isinstance(value, list) else value


def test_every_file_of_the_folder_is_known(traces: Path) -> None:
    assert {path.name for path in traces.glob("*.json*")} == FILES.keys() | NO_TRACES.keys()


@pytest.mark.parametrize("name", FILES)
def test_all_work_is_in_the_columns(traces: Path, name: str) -> None:
    recording = load_trace(traces / name).recording
    on_device = sum(EventKind(kind).is_on_device for kind in recording.kind)
    assert (len(recording) - on_device, on_device) == FILES[name]


@pytest.mark.parametrize("name", FILES)
def test_work_of_a_device_has_its_launcher(traces: Path, name: str) -> None:
    recording = load_trace(traces / name).recording
    work = {EventKind.KERNEL, EventKind.MEMCPY, EventKind.MEMSET}
    launchers = [
        launcher
        for launcher, kind in zip(recording.launcher, recording.kind, strict=True)
        if EventKind(kind) in work
    ]
    assert launchers
    assert {EventKind(recording.kind[launcher]) for launcher in launchers} <= {
        EventKind.RUNTIME,
        EventKind.DRIVER,
    }


@pytest.mark.parametrize("name", FILES)
def test_a_trace_written_again_has_the_same_events(traces: Path, tmp_path: Path, name: str) -> None:
    first = load_trace(traces / name)
    again = tmp_path / name
    first.export_chrome_trace(again)
    ours, theirs = as_decimals(again), as_decimals(traces / name)
    assert event_counts(ours) == event_counts(theirs)
    assert {**ours, "traceEvents": 0} == {**theirs, "traceEvents": 0}
    second = load_trace(again)
    assert columns(second.recording) == columns(first.recording)
    assert second.metadata == first.metadata
    assert second.other_events == first.other_events


@pytest.mark.parametrize("name", FILES)
def test_times_are_those_of_the_text(traces: Path, name: str) -> None:
    recording = load_trace(traces / name).recording
    document = as_decimals(traces / name)
    base_ns = document.get("baseTimeNanoseconds", 0)
    slices = Counter(
        (event["name"], base_ns + event["ts"] * 1000, event["dur"] * 1000)
        for event in document["traceEvents"]
        if event["ph"] == "X" and event["cat"] != "Trace"
    )
    assert slices == Counter(
        (recording.name(row), recording.trace_start_ns + start_ns, duration_ns)
        for row, (start_ns, duration_ns) in enumerate(
            zip(recording.start_ns, recording.duration_ns, strict=True)
        )
    )


@pytest.mark.parametrize("name", FILES)
def test_events_nest_and_self_times_sum_up(traces: Path, name: str) -> None:
    recording = load_trace(traces / name).recording
    roots_ns: Counter[int] = Counter()
    selfs_ns: Counter[int] = Counter()
    for row, parent in enumerate(recording.parent):
        if EventKind(recording.kind[row]).is_on_device:
            assert (parent, recording.self_ns[row]) == (-1, 0)
            continue
        thread = recording.thread[row]
        selfs_ns[thread] += recording.self_ns[row]
        end_ns = recording.start_ns[row] + recording.duration_ns[row]
        if parent < 0:
            roots_ns[thread] += recording.duration_ns[row]
        else:
            assert recording.start_ns[parent] <= recording.start_ns[row]
            assert end_ns <= recording.start_ns[parent] + recording.duration_ns[parent]
    assert selfs_ns == roots_ns


def test_shapes_come_from_the_file(traces: Path) -> None:
    trace = load_trace(traces / "minitoy_training_rocm.json.gz")
    (event,) = [event for event in trace.events() if event.name == "aten::addmm"][:1]
    found = next(
        event for event in as_decimals(trace.path)["traceEvents"] if event.get("name") == "aten::addmm"
    )
    assert event.structured_input_shapes == found["args"]["Input Dims"]
    assert event.input_dtypes == found["args"]["Input type"]
    by_shape = trace.key_averages(group_by_input_shape=True)
    assert len(by_shape) > len(trace.key_averages())


@pytest.mark.parametrize(("name", "problem"), NO_TRACES.items())
def test_other_files_are_refused_with_the_reason(traces: Path, name: str, problem: str) -> None:
    with pytest.raises(DocumentError, match=problem):
        load_trace(traces / name)


@pytest.mark.slow
def test_perfetto_sees_the_same_again(traces: Path, tmp_path: Path) -> None:
    """What it drops of the file too (in which slices overlap) it drops of ours, and nothing else."""
    packed = traces / "alexnet_inference_cuda.json.gz"
    plain, again = tmp_path / "plain.json", tmp_path / "again.json"
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    load_trace(packed).export_chrome_trace(again)
    seen = []
    for path in (plain, again):
        with perfetto(path) as page:
            faults = page.query("select name, value from stats where severity = 'data_loss'", "name", "value")
            slices = page.query("select ts, dur, name, track_id from slice", "ts", "dur", "name")
            seen.append((faults, sorted(slices), page.query("select count(*) as flows from flow", "flows")))
    assert seen[0] == seen[1]
    assert len(seen[0][1]) > 800


@pytest.mark.filterwarnings("ignore::Warning")  # HTA's own, and pandas' about HTA
@pytest.mark.parametrize(
    "analysis",
    [
        "get_temporal_breakdown",
        "get_idle_time_breakdown",
        "get_cuda_kernel_launch_stats",
        "get_gpu_kernel_breakdown",
    ],
)
def test_holistic_trace_analysis_finds_the_same_again(traces: Path, tmp_path: Path, analysis: str) -> None:
    trace_analysis = pytest.importorskip(
        "hta.trace_analysis", reason="HolisticTraceAnalysis is not installed (it is in the dev extra)"
    )
    packed, again = traces / "alexnet_inference_cuda.json.gz", tmp_path / "again.json"
    load_trace(packed).export_chrome_trace(again)
    found = [
        getattr(trace_analysis.TraceAnalysis(trace_files={0: str(path)}), analysis)(visualize=False)
        for path in (packed, again)
    ]
    assert str(found[0]) == str(found[1])
    assert "Empty DataFrame" not in str(found[0])
