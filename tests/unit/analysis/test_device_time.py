"""A breakdown of device time, computed by hand; a microsecond is a unit."""

import json
from pathlib import Path
from typing import Any

from pytest_opprof.analysis.device_time import device_times, peak_memory
from pytest_opprof.traces.imported_recording import ImportedRecording
from pytest_opprof.traces.kineto import load_trace

Event = dict[str, Any]


def host(name: str, start: int, end: int, *, cat: str = "cpu_op", correlation: int = 0) -> Event:
    args = {"correlation": correlation} if correlation else {}
    return {
        "ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": end - start, "args": args
    }  # fmt: skip


def launch(at: int, *, correlation: int) -> Event:
    return host("cudaLaunchKernel", at, at + 2, cat="cuda_runtime", correlation=correlation)


def work(
    start: int, end: int, *, correlation: int = 0, name: str = "gemm", stream: int = 7, cat: str = "kernel"
) -> Event:
    args = {"device": 0, "stream": stream, "correlation": correlation}
    return {
        "ph": "X", "cat": cat, "name": name, "pid": 0, "tid": stream, "ts": start, "dur": end - start, "args": args
    }  # fmt: skip


def step(start: int, end: int, number: int = 0) -> Event:
    return host(f"ProfilerStep#{number}", start, end, cat="user_annotation")


def recording(tmp_path: Path, *events: Event) -> ImportedRecording:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return load_trace(path).recording


NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def test_collectives_beside_compute_are_overlapped(tmp_path: Path) -> None:
    ((device, (time,)),) = device_times(
        recording(tmp_path, step(0, 100), work(10, 50), work(30, 90, name=NCCL, stream=20))
    )
    assert device == 0
    assert (time.span_ns, time.compute_ns, time.communication_ns) == (100_000, 40_000, 60_000)
    assert (time.overlap_ns, time.exposed_communication_ns) == (20_000, 40_000)
    assert time.idle_ns == 20_000


def test_copies_count_only_if_nothing_else_runs(tmp_path: Path) -> None:
    ((_, (time,)),) = device_times(
        recording(
            tmp_path, step(0, 100), work(0, 50), work(40, 60, name="Memcpy HtoD", cat="gpu_memcpy", stream=9)
        )
    )
    assert (time.copy_ns, time.compute_ns, time.idle_ns) == (10_000, 50_000, 40_000)


def test_idle_time_has_its_cause(tmp_path: Path) -> None:
    # Until 30 an op dispatches, until 50 Python runs, from 50 to 60 the thread waits for the device, from 60 to
    # 70 the next op dispatches; the kernel is launched at 70 and begins at 75.
    ((_, (time,)),) = device_times(
        recording(
            tmp_path,
            step(0, 100),
            host("aten::a", 0, 30),
            launch(1, correlation=1),
            work(5, 10, correlation=1),
            host("cudaDeviceSynchronize", 50, 60, cat="cuda_runtime"),
            host("aten::b", 60, 72),
            launch(68, correlation=2),
            work(75, 100, correlation=2),
        )
    )
    # The first gap, of 5: launched at 3. The second, of 65.
    assert time.launch_bound_ns == 3_000 + 20_000 + 10_000
    assert time.host_ns == 20_000
    assert time.synchronize_ns == 10_000
    assert time.queued_ns == 2_000 + 5_000
    assert time.unknown_ns == 0
    assert time.idle_ns == 70_000


def test_the_end_of_a_trace_is_unknown(tmp_path: Path) -> None:
    ((_, (time,)),) = device_times(recording(tmp_path, step(0, 100), work(0, 40)))
    assert (time.unknown_ns, time.idle_ns) == (60_000, 60_000)


def test_a_trace_without_steps_is_one_stretch(tmp_path: Path) -> None:
    ((_, (time,)),) = device_times(recording(tmp_path, work(10, 50), work(60, 110)))
    assert (time.span_ns, time.compute_ns) == (100_000, 90_000)


def test_steps_share_a_kernel_that_crosses_them(tmp_path: Path) -> None:
    ((_, times),) = device_times(recording(tmp_path, step(0, 50), step(50, 100, 1), work(40, 70)))
    assert [time.compute_ns for time in times] == [10_000, 20_000]


def test_peak_memory_is_each_allocators(tmp_path: Path) -> None:
    def change(at: int, total: int, device: int) -> Event:
        args = {
            "Device Type": 1, "Device Id": device, "Bytes": 512, "Addr": 1 + at,
            "Total Allocated": total, "Total Reserved": 2 * total,
        }  # fmt: skip
        return {
            "ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": at,
            "args": args,
        }  # fmt: skip

    peaks = peak_memory(recording(tmp_path, change(1, 1024, 0), change(2, 512, 0), change(3, 4096, 1)))
    assert peaks == {(1, 0): (1024, 2048), (1, 1): (4096, 8192)}
