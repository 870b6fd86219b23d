"""Traces that torch's profiler wrote: read, rewritten, and read again.

Those of other people's programs on real accelerators lie outside the repository, if there are any.
"""

import gzip
import json
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.html.perfetto import perfetto

from pytest_opprof import load_trace
from pytest_opprof.analysis.collectives import collectives
from pytest_opprof.analysis.device_time import device_times
from pytest_opprof.errors import DocumentError
from pytest_opprof.kinds import EventKind
from pytest_opprof.traces.imported_recording import ImportedRecording

# The events of each file, counted by category: on the host, on devices.
OWN = {
    "calls-torch2.13.0.json.gz": (85, 0),
    "threads-torch2.13.0.json.gz": (69, 0),
    "training-torch2.13.0.json.gz": (434, 0),  # 116 of them memory
}
DEVICES = {
    "alexnet_inference_cuda.json.gz": (728, 139),
    "backward_thread.json": (6, 1),
    "event_sync_multi_stream_cuda.json.gz": (45, 11),
    "minitoy_training_rocm.json.gz": (94, 18),
    "nccl_training_rank0_cuda.json.gz": (23128, 3804),
    "sampled_training_cuda.json.gz": (3606, 1204),
    "simple_add_cuda.json.gz": (51, 4),
    "triton_kernel_cuda.json.gz": (6, 1),
}
FILES = OWN | DEVICES
NO_TRACES = {
    "simple_add_execution_trace.json.gz": "it has no traceEvents",
    "torch_basic_evaluation_events.json": "byte 1: an event that is not an object",
}
WORK = frozenset({EventKind.KERNEL, EventKind.MEMCPY, EventKind.MEMSET})
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


FindTrace = Callable[[str], Path]


def columns(recording: ImportedRecording) -> dict[str, list[int]]:
    return {name: list(getattr(recording, name)) for name in COLUMNS}


def as_decimals(path: Path) -> Any:
    """The file as Python reads it, with numbers as decimal text."""
    data = path.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def event_counts(document: Any) -> Counter[str]:
    """How often each event occurs, regardless of the order of events and members."""
    return Counter(repr(sorted(_normal(event).items())) for event in document["traceEvents"])


def _normal(value: Any) -> Any:
    if isinstance(value, Decimal):
        return value.normalize()
    if isinstance(value, dict):
        return {key: _normal(value[key]) for key in sorted(value)}
    return [_normal(entry) for entry in value] if isinstance(value, list) else value


def test_every_trace_of_the_repository_is_known(repository: Path) -> None:
    folder = repository / "tests" / "data" / "traces"
    assert {path.name for path in folder.glob("*.json*")} == OWN.keys()


def test_every_file_of_the_folder_is_known(traces: Path) -> None:
    assert {path.name for path in traces.glob("*.json*")} == DEVICES.keys() | NO_TRACES.keys()


@pytest.mark.parametrize("name", FILES)
def test_columns_hold_all_events(real_trace: FindTrace, name: str) -> None:
    recording = load_trace(real_trace(name)).recording
    on_device = sum(EventKind(kind).is_on_device for kind in recording.kind)
    assert (len(recording) - on_device, on_device) == FILES[name]


@pytest.mark.parametrize("name", DEVICES)
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
def test_a_trace_written_again_has_the_same_events(real_trace: FindTrace, tmp_path: Path, name: str) -> None:
    first = load_trace(real_trace(name))
    again = tmp_path / name
    first.export_chrome_trace(again)
    ours, theirs = as_decimals(again), as_decimals(real_trace(name))
    assert event_counts(ours) == event_counts(theirs)
    assert {**ours, "traceEvents": 0} == {**theirs, "traceEvents": 0}
    second = load_trace(again)
    assert columns(second.recording) == columns(first.recording)
    assert second.metadata == first.metadata
    assert second.other_events == first.other_events


@pytest.mark.parametrize("name", FILES)
def test_times_match_the_text(real_trace: FindTrace, name: str) -> None:
    recording = load_trace(real_trace(name)).recording
    document = as_decimals(real_trace(name))
    base_ns = document.get("baseTimeNanoseconds", 0)
    slices = Counter(
        (event["name"], base_ns + event["ts"] * 1000, event.get("dur", 0) * 1000)
        for event in document["traceEvents"]
        if event.get("cat") == "cpu_instant_event" or (event["ph"] == "X" and event["cat"] != "Trace")
    )
    assert slices == Counter(
        (recording.name(row), recording.trace_start_ns + start_ns, duration_ns)
        for row, (start_ns, duration_ns) in enumerate(
            zip(recording.start_ns, recording.duration_ns, strict=True)
        )
    )


@pytest.mark.parametrize("name", FILES)
def test_events_nest_and_self_times_sum_up(real_trace: FindTrace, name: str) -> None:
    recording = load_trace(real_trace(name)).recording
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
def test_perfetto_reads_a_copy_alike(traces: Path, tmp_path: Path) -> None:
    """Perfetto drops the same slices (overlapping ones) of our trace as of the file."""
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
def test_holistic_trace_analysis_reads_a_copy_alike(traces: Path, tmp_path: Path, analysis: str) -> None:
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


@pytest.mark.filterwarnings("ignore::Warning")  # HTA's own, and pandas' about HTA
def test_device_time_matches_holistic_trace_analysis(traces: Path) -> None:
    # Only traces in whole microseconds: HTA rounds each event down.
    trace_analysis = pytest.importorskip(
        "hta.trace_analysis", reason="HolisticTraceAnalysis is not installed (it is in the dev extra)"
    )
    path = traces / "sampled_training_cuda.json.gz"
    analysis = trace_analysis.TraceAnalysis(trace_files={0: str(path)}, include_last_profiler_step=True)
    told = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    overlap = analysis.get_comm_comp_overlap(visualize=False).iloc[0]["comp_comm_overlap_pctg"]
    recording = load_trace(path).recording
    works = [event for event, kind in enumerate(recording.kind) if EventKind(kind) in WORK]
    ends = [recording.start_ns[event] + recording.duration_ns[event] for event in works]
    window = min(recording.start_ns[event] for event in works), max(ends)
    ((_, (time,)),) = device_times(recording, [window])
    assert time.compute_ns == told["compute_time(us)"] * 1000
    assert time.exposed_communication_ns + time.copy_ns == told["non_compute_time(us)"] * 1000
    assert time.idle_ns == told["idle_time(us)"] * 1000
    assert round(100 * time.overlap_ns / time.communication_ns, 2) == overlap


def test_collectives_of_a_real_rank_are_found(traces: Path) -> None:
    # Counted in the file: two broadcasts and five reductions in each of three steps, in one group of two ranks.
    found = collectives(load_trace(traces / "nccl_training_rank0_cuda.json.gz").recording)
    assert Counter((one.step, one.name) for one in found) == {
        (step, name): count for step in range(3) for name, count in (("broadcast", 2), ("allreduce", 5))
    }
    assert {(one.group, one.ranks, one.sequence) for one in found} == {("0", (0, 1), -1)}
    # 2,049,000 floats in 3,306,963 ns, each of which crosses both links of a ring of two once.
    assert found[2].nbytes == 8_196_000
    assert found[2].bus_bandwidth == pytest.approx(8_196_000e9 / 3_306_963)
