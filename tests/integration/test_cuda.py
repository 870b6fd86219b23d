"""CUDA activities in our profiler, over the fake libcupti: their owners, places and names."""

import json
from pathlib import Path

import pytest
from support.cuda.profiled_cuda import answer

pytestmark = pytest.mark.usefixtures("fake_cuda")


@pytest.mark.parametrize("major", [12, 13])
def test_kernels_are_under_the_op_that_launched_them(major: int) -> None:
    said = answer(
        """
    with profile(activities=[CPU, CUDA]) as prof:
        step()
    said(
        kernels={
            event.name: [kernel.name for kernel in event.kernels]
            for event in prof.events() if event.device_type.name == "CPU"
        },
        rows={row.key: [row.count, row.device_type.name] for row in prof.key_averages()},
        outer=next(row.device_time_total for row in prof.key_averages() if row.key == "outer"),
        sources=prof.cycles[0].recording.sources,
        supported=sorted(activity.name for activity in supported_activities()),
    )
    """,
        major=major,
    )
    assert said["kernels"]["outer"] == ["gemm(float*, int)", "node", "node", "node"]
    assert said["kernels"]["inner"] == ["Memcpy DtoH (Device -> Pageable)"]
    assert said["rows"]["gemm(float*, int)"] == [1, "CUDA"]
    assert said["rows"]["node"] == [3, "CUDA"]
    assert said["rows"]["cudaLaunchKernel"] == [1, "CPU"]
    assert said["outer"] == pytest.approx(24, abs=0.1)
    assert "cuda" in said["sources"]
    assert said["supported"] == ["CPU", "CUDA"]


def test_device_time_of_a_range_sums_its_kernels() -> None:
    said = answer(
        """
    with profile(activities=[CPU, CUDA]) as prof:
        with record_function("outer"):
            cuda.launch("first", ns=1_000)
            for number in range(40):
                with record_function(f"inner {number}"):
                    cuda.launch("more", ns=1_000)
            cuda.launch("last", ns=1_000)
        cuda.synchronize()
    recording = prof.cycles[0].recording
    rows = [row for row in range(len(recording)) if recording.name(row) == "outer"]
    kernels = [row for row in range(len(recording)) if recording.name(row) in {"first", "last"}]
    said(
        spans=[[recording.start_ns[row], recording.start_ns[row] + recording.duration_ns[row]] for row in rows],
        first=min(recording.start_ns[row] for row in kernels),
        last=max(recording.start_ns[row] + recording.duration_ns[row] for row in kernels),
    )
    """
    )
    on_host, on_device = said["spans"]
    assert on_device == [said["first"], said["last"]]
    assert on_host != on_device


def test_kernel_belongs_to_the_launching_step() -> None:
    said = answer(
        """
    cuda.control("waiting", 0)  # what takes a minute is over at once
    with profile(activities=[CPU, CUDA], schedule=schedule(wait=0, warmup=1, active=2, repeat=1)) as prof:
        for _ in range(3):
            cuda.launch("slow", ns=60_000_000_000)
            prof.step()
    recording = prof.cycles[0].recording
    rows = [row for row in range(len(recording)) if recording.name(row) == "slow"]
    said(
        steps=[recording.step[row] for row in rows],
        ends=[recording.start_ns[row] + recording.duration_ns[row] for row in rows],
        window=recording.trace_end_ns,
    )
    """
    )
    assert said["steps"] == [0, 1]
    assert max(said["ends"]) > said["window"]


def test_a_table_has_columns_of_the_device() -> None:
    said = answer(
        """
    with profile(activities=[CPU, CUDA]) as prof:
        step()
    said(table=prof.key_averages().table(sort_by="self_cuda_time_total"))
    """
    )
    assert "Self CUDA" in said["table"]
    assert "gemm(float*, int)" in said["table"]


def test_cuda_is_recorded_if_used_by_default() -> None:
    said = answer(
        """
    with profile() as prof:
        step()
    with profile(activities=[CPU]) as without:
        step()
    said(
        used=[row.key for row in prof.key_averages() if row.key == "node"],
        left_out=[row.key for row in without.key_averages()],
        enabled=cuda.is_enabled(10),
    )
    """
    )
    assert said["used"] == ["node"]
    assert sorted(said["left_out"]) == ["inner", "outer"]
    assert said["enabled"] is False


def test_pauses_are_not_recorded() -> None:
    said = answer(
        """
    with profile(activities=[CPU, CUDA]) as prof:
        cuda.launch("before")
        prof.toggle_collection_dynamic(False, [CPU, CUDA])
        cuda.launch("meanwhile")
        prof.toggle_collection_dynamic(True, [CPU, CUDA])
        cuda.launch("after")
    said(names=[row.key for row in prof.key_averages()], lost=prof.cycles[0].recording.device_use().unmatched_launches)
    """
    )
    assert sorted(said["names"]) == ["after", "before", "cudaLaunchKernel"]
    assert said["lost"] == 0


def test_cuda_can_be_switched_off_alone() -> None:
    said = answer(
        """
    with profile(activities=[CPU, CUDA]) as prof:
        cuda.launch("before")
        prof.toggle_collection_dynamic(False, [CUDA])
        with record_function("op"):
            cuda.launch("meanwhile")
        prof.toggle_collection_dynamic(False, [CPU, CUDA])
        prof.toggle_collection_dynamic(True, [CPU])
        with record_function("another"):
            cuda.launch("still off")
        prof.toggle_collection_dynamic(True, [CUDA])
        cuda.launch("after")
    said(names=[row.key for row in prof.key_averages()], lost=prof.cycles[0].recording.device_use().unmatched_launches)
    """
    )
    assert sorted(said["names"]) == ["after", "another", "before", "cudaLaunchKernel", "op"]
    assert said["lost"] == 0


def test_memory_of_devices_is_in_tables_and_traces(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    said = answer(
        f"""
    with profile(activities=[CPU, CUDA], profile_memory=True) as prof:
        with record_function("outer"):
            cuda.run("malloc", address=0x1000, bytes=4096, device=1)
        cuda.run("free", address=0x1000, device=1)
    prof.export_chrome_trace({str(trace)!r})
    (outer,) = [row for row in prof.key_averages() if row.key == "outer"]
    said(
        of_outer=[outer.device_memory_usage, outer.self_device_memory_usage],
        table=prof.key_averages().table(),
        sources=prof.cycles[0].recording.sources,
    )
    """
    )
    assert said["of_outer"] == [4096, 4096]
    assert {"CUDA Mem", "Self CUDA Mem"} <= set(
        said["table"].replace("  ", "\n").replace("\n ", "\n").split("\n")
    )
    assert "memory-cuda" in said["sources"]
    events = [event for event in json.loads(trace.read_text())["traceEvents"] if event["name"] == "[memory]"]
    of_devices = [event["args"] for event in events if event["args"]["Device Type"] == 1]
    told = [
        {key: args[key] for key in ("Addr", "Bytes", "Device Id", "Total Allocated")} for args in of_devices
    ]
    assert told == [
        {"Addr": 4096, "Bytes": 4096, "Device Id": 1, "Total Allocated": 4096},
        {"Addr": 4096, "Bytes": -4096, "Device Id": 1, "Total Allocated": 0},
    ]


@pytest.mark.slow
def test_tensor_memory_replaces_driver_memory() -> None:
    pytest.importorskip("torch")
    said = answer(
        """
    import torch
    with profile(activities=[CPU, CUDA], profile_memory=True) as prof:
        torch.zeros(256)
        cuda.run("malloc", bytes=4096)
    recording = prof.cycles[0].recording
    said(sources=recording.sources, kept=sum(recording.self_device_memory), host=max(recording.self_cpu_memory))
    """
    )
    assert {"memory", "memory-cuda-tensors"} <= set(said["sources"])
    assert "memory-cuda" not in said["sources"]
    assert (said["kept"], said["host"]) == (0, 1024)
