"""Traces of CUDA work, recorded over the fake libcupti: Kineto's names, and readers of the traces."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.programs.children import answer_of

from pytest_opprof import load_trace

STEPS = 20  # HTA fails in pandas if call numbers fit a byte and row numbers do not
PROGRAM = """
    import json
    from support.cuda import fake_cuda
    cuda = fake_cuda.load(major=13)
    cuda.use_device(0)
    from pytest_opprof import ProfilerActivity, profile, record_function, schedule

    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        schedule=schedule(wait=0, warmup=1, active=STEPS, repeat=1),
    ) as prof:
        for _ in range(1 + STEPS):
            with record_function("forward"):
                cuda.memcpy(fake_cuda.HTOD, 8192, ns=2000)
                cuda.launch(
                    "gemm", ns=90_000, grid=(264, 1, 1), block=(128, 1, 1), registers=40, static_shared=1024,
                    dynamic_shared=512,
                )
                cuda.launch("beside", stream=13, ns=30_000)
                cuda.memset(512, ns=500)
            cuda.graph("node", nodes=2, ns=1000)
            cuda.launch("of the driver", api="driver", ns=1000)
            cuda.run("record", event=3, stream=13)
            cuda.run("wait_event", event=3, stream=7)
            cuda.run("sync_event", event=4)
            cuda.run("sync_stream", stream=7)
            cuda.synchronize()
            prof.step()
    prof.export_chrome_trace(PATH)
    print(json.dumps(sorted({(row.key, row.count, round(row.device_time_total)) for row in prof.key_averages()})))
"""


@pytest.fixture
def rows_and_trace(fake_cuda: None, tmp_path: Path) -> tuple[Any, Path]:
    """The key averages of a program, and its trace."""
    path = tmp_path / "trace.json"
    return answer_of(PROGRAM.replace("STEPS", str(STEPS)).replace("PATH", repr(str(path)))), path


@pytest.fixture
def trace(rows_and_trace: tuple[Any, Path]) -> dict[str, Any]:
    """The trace as JSON."""
    loaded = json.loads(rows_and_trace[1].read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def events(trace: dict[str, Any], category: str) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event.get("cat") == category]


def test_work_has_kinetos_args(trace: dict[str, Any]) -> None:
    kernel = next(event for event in events(trace, "kernel") if event["name"] == "gemm")
    args = dict(kernel["args"])
    assert args.pop("External id") == args.pop("correlation") - 2  # the range's, the copy call's, its own
    assert args == {
        "device": 0,
        "stream": 7,
        "context": 1,
        "queued": 0,
        "registers per thread": 40,
        "shared memory": 1536,
        "blocks per SM": 2,
        "warps per SM": 8,
        "est. achieved occupancy %": 13,
        "grid": [264, 1, 1],
        "block": [128, 1, 1],
    }
    assert (kernel["pid"], kernel["tid"]) == (0, 7)
    copy = events(trace, "gpu_memcpy")[0]
    assert copy["name"] == "Memcpy HtoD (Pageable -> Device)"
    assert copy["args"]["bytes"] == 8192
    assert copy["args"]["memory bandwidth (GB/s)"] == pytest.approx(8192 / 2000, rel=0.01)
    assert events(trace, "gpu_memset")[0]["args"]["bytes"] == 512
    node = next(event for event in events(trace, "kernel") if event["name"] == "node")
    assert {"graph id", "graph node id"} <= node["args"].keys()
    waits = {event["name"]: event["args"] for event in events(trace, "cuda_sync")}
    assert waits["Stream Sync"]["stream"] == 7
    assert waits["Context Sync"]["cuda_sync_kind"] == "Context Sync"


def test_a_wait_says_which_stream_recorded_its_event(trace: dict[str, Any]) -> None:
    records = {
        event["args"]["correlation"]
        for event in events(trace, "cuda_runtime")
        if event["name"] == "cudaEventRecord"
    }
    waits = {event["name"]: event["args"] for event in events(trace, "cuda_sync")}
    told = waits["Stream Wait Event"]
    assert told["wait_on_cuda_event_record_corr_id"] in records
    assert (told["wait_on_stream"], told["wait_on_cuda_event_id"]) == (13, 3)
    unknown = waits["Event Sync"]  # of an event that was recorded before the recording
    assert [unknown[f"wait_on_{what}"] for what in ("stream", "cuda_event_record_corr_id")] == [-1, -1]
    assert unknown["wait_on_cuda_event_id"] == 4


def test_calls_have_their_numbers_and_arrows(trace: dict[str, Any]) -> None:
    calls = {event["name"]: event["args"]["cbid"] for event in events(trace, "cuda_runtime")}
    assert calls["cudaLaunchKernel"] == 211
    assert {event["name"] for event in events(trace, "cuda_driver")} == {"cuLaunchKernel"}
    arrows = events(trace, "ac2g")
    begun = {event["id"] for event in arrows if event["ph"] == "s"}
    ended = [event["id"] for event in arrows if event["ph"] == "f"]
    work = sum(len(events(trace, kind)) for kind in ("kernel", "gpu_memcpy", "gpu_memset", "cuda_sync"))
    assert set(ended) == begun
    assert len(ended) == work


def test_trace_records_the_cuda_version(trace: dict[str, Any]) -> None:
    assert trace["cuda_driver_version"] // 1000 >= 12
    assert trace["cupti_version"] >= 18  # of CUDA 12.0


def test_ranges_and_devices_are_named(trace: dict[str, Any]) -> None:
    forward = [event for event in events(trace, "gpu_user_annotation") if event["name"] == "forward"]
    assert {event["tid"] for event in forward} == {7, 13}
    assert len(forward) == 2 * STEPS  # of each step, on each stream
    device = trace["deviceProperties"][0]
    assert (device["id"], device["name"], device["numSms"], device["computeMajor"]) == (
        0,
        "Fake GPU 0",
        132,
        9,
    )
    labels = {
        event["args"].get("labels") for event in trace["traceEvents"] if event["name"] == "process_labels"
    }
    assert labels == {"CPU", "GPU 0"}


def test_trace_survives_reading_back(rows_and_trace: tuple[Any, Path]) -> None:
    rows, path = rows_and_trace
    averages = load_trace(path).key_averages()
    again = sorted([row.key, row.count, round(row.device_time_total)] for row in averages)
    assert again == rows


@pytest.mark.filterwarnings("ignore::Warning")  # HTA's own, and pandas' about HTA
def test_holistic_trace_analysis_reads_the_trace(rows_and_trace: tuple[Any, Path]) -> None:
    trace_analysis = pytest.importorskip(
        "hta.trace_analysis", reason="HolisticTraceAnalysis is not installed (it is in the dev extra)"
    )
    analysis = trace_analysis.TraceAnalysis(
        trace_files={0: str(rows_and_trace[1])}, include_last_profiler_step=True
    )
    assert list(analysis.get_profiler_steps()) == list(range(1, 1 + STEPS))
    temporal = analysis.get_temporal_breakdown(visualize=False)
    assert temporal["compute_time(us)"][0] > STEPS * 88  # HTA rounds to whole microseconds
    idle, _ = analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
    assert set(idle["stream"]) >= {7, 13}
    kinds, kernels = analysis.get_gpu_kernel_breakdown(visualize=False)
    assert {"COMPUTATION", "MEMORY"} <= set(kinds["kernel_type"])
    assert {"gemm", "node"} <= set(kernels["name"])
    assert not {"forward", "ProfilerStep#1"} & set(kernels["name"])  # ranges are not kernels
    series = analysis.get_queue_length_time_series(ranks=[0])
    assert series[0]["queue_length"].max() >= 1
    assert not analysis.get_queue_length_summary(ranks=[0]).empty
