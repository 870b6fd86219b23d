"""CUDA's activities through our profiler, over the fake libcupti: whose they are, where, and in what words."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.programs.children import answer_of, run_python

from pytest_opprof.capture.cuda import has_driver

pytestmark = pytest.mark.usefixtures("fake_cuda")

PROGRAM = """
    import json, warnings
    from support.cuda import fake_cuda
    cuda = fake_cuda.load(major=MAJOR, device=0)
    from pytest_opprof import ProfilerActivity, profile, record_function, schedule, supported_activities
    CPU, CUDA = ProfilerActivity.CPU, ProfilerActivity.CUDA

    def step():
        with record_function("outer"):
            cuda.launch("_Z4gemmPfi", ns=20_000, grid=(8, 1, 1), block=(128, 1, 1), registers=40, dynamic_shared=512)
            with record_function("inner"):
                cuda.memcpy(fake_cuda.DTOH, 4096, ns=1000)
            cuda.graph("node", nodes=3, ns=1000)
        cuda.synchronize()

    def said(**what):
        print(json.dumps(what))
"""


def answer(program: str, *, major: int = 12) -> dict[str, Any]:
    said = answer_of(PROGRAM.replace("MAJOR", str(major)) + program)
    assert isinstance(said, dict)
    return said


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


def test_a_range_with_many_inside_lasts_on_the_device_as_long_as_all_of_them() -> None:
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


def test_a_kernel_is_of_the_step_that_launched_it() -> None:
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


def test_cuda_is_recorded_where_it_is_used_unless_told() -> None:
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


def test_nothing_of_a_pause_is_recorded() -> None:
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


def test_cuda_is_switched_off_alone() -> None:
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


# ---- what is lost is said -----------------------------------------------------------------------


def test_what_is_lost_is_counted() -> None:
    said = answer(
        """
    with profile(activities=[CPU, CUDA]) as prof:
        cuda.launch("lost", flags="lost")
        cuda.launch("untimed", flags="untimed")
        cuda.launch("endless", flags="endless")
        cuda.launch("orphan", api="none")
        cuda.run("overhead", ns=7000)
    stats = prof.cycles[0].recording.stats
    said(
        unseen=prof.cycles[0].recording.device_use().unmatched_launches, untimed=stats.device_untimed, orphans=stats.device_unlaunched,
        overhead=stats.device_overhead_ns, events=stats.device_events,
    )
    """
    )
    assert said == {"unseen": 1, "untimed": 2, "orphans": 1, "overhead": 7000, "events": 3}


def test_dropped_records_are_counted() -> None:
    said = answer(
        """
    with profile(activities=[CPU, CUDA]) as prof:
        cuda.control("drop", 5)
        for _ in range(10):
            cuda.launch("kernel")
    stats = prof.cycles[0].recording.stats
    said(dropped=stats.device_dropped, kernels=stats.device_events)
    """
    )
    assert said["dropped"] == 5
    assert said["kernels"] >= 5


def test_launches_into_a_graph_lack_nothing() -> None:
    said = answer(
        """
    with profile(activities=[CPU, CUDA]) as prof:
        cuda.run("call", cbid=BEGIN)
        cuda.launch("captured", flags="lost")
        cuda.run("call", cbid=END)
        cuda.launch("failed", result=700)
    said(unseen=prof.cycles[0].recording.device_use().unmatched_launches)
    """.replace("BEGIN", "315").replace("END", "319")
    )
    assert said["unseen"] == 0


# ---- where it cannot be recorded ----------------------------------------------------------------

REFUSALS = {
    "another subscriber": ('cuda.other_subscriber("nsys")', "another profiler"),
    "no permission": ('cuda.fail("cuptiActivityEnable", 35)', "NVreg_RestrictProfilingToAdminUsers=0"),
    "no device": ('cuda.without_gpu("12")', "records nothing here"),
    "an old driver": ("cuda.driver.fake_cuda_driver_version(11080)", "too old"),
    "an old libcupti": ('cuda.control("version", 17)', "older than CUDA 12.0"),
}


@pytest.mark.parametrize(("how", "why"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refusal_is_one_sentence_and_the_cpu_goes_on(how: str, why: str) -> None:
    said = answer(
        f"""
    {how}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with profile(activities=[CPU, CUDA]) as prof:
            step()
    said(
        told=[str(one.message) for one in caught],
        names=sorted(row.key for row in prof.key_averages()),
        sources=prof.cycles[0].recording.sources,
    )
    """
    )
    assert len(said["told"]) == 1
    assert said["told"][0].startswith("CUDA is not recorded: ")
    assert why in said["told"][0]
    assert said["names"] == ["inner", "outer"]
    assert "cuda" not in said["sources"]


def test_torchs_profiler_keeps_cupti() -> None:
    said = answer(
        """
    import sys, types
    torch = types.ModuleType("torch")
    profiler = types.ModuleType("torch.autograd.profiler")
    profiler._is_profiler_enabled = True
    from pytest_opprof.capture import cuda as ours
    sys.modules["torch.autograd.profiler"] = profiler
    ours.imported_torch = lambda: torch
    said(why=ours.other_profiler())
    """
    )
    assert said["why"].startswith("torch.profiler is recording")


def test_a_client_that_takes_over_is_noticed() -> None:
    said = answer(
        """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with profile(activities=[CPU, CUDA]) as prof:
            cuda.launch("ours")
            cuda.control("other_client", 1)
            cuda.launch("theirs")
            cuda.control("other_client", 0)
    said(taken=prof.cycles[0].recording.stats.device_partial, told=[str(one.message) for one in caught])
    """
    )
    assert said["taken"] is True
    assert "took over CUPTI" in said["told"][0]


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_flush_that_fails_is_told(nth: int) -> None:
    """Which records it kept back nobody knows."""
    said = answer(
        f"""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with profile(activities=[CPU, CUDA]) as prof:
            cuda.launch("ours")
            cuda.fail("cuptiActivityFlushAll", 21, nth={nth})
    said(partial=prof.cycles[0].recording.stats.device_partial, told=[str(one.message) for one in caught])
    """
    )
    assert said["partial"] is True
    assert "cuptiActivityFlushAll" in said["told"][0]


def test_cuda_that_was_not_started_is_said() -> None:
    done = run_python(
        PROGRAM.replace("MAJOR", "12").replace("device=0", "device=None")
        + """
    with profile(activities=[CPU, CUDA]):
        pass
    """
    )
    assert done.returncode != 0
    assert "nothing in this process has started CUDA yet" in done.stderr


def test_a_forked_child_leaves_cuda_alone() -> None:
    said = answer(
        """
    import os
    from pytest_opprof.capture.cuda import open_cuda
    with profile(activities=[CPU, CUDA]) as prof:
        cuda.launch("before")
        warnings.simplefilter("ignore")
        read, write = os.pipe()
        if os.fork() == 0:
            answer = open_cuda()
            os.write(write, f"{answer.state.name}: {answer.reason}".encode())
            os._exit(0)
        os.close(write)
        child = os.read(read, 4096).decode()
        os.wait()
        cuda.launch("after")
    said(child=child, parent=sorted(row.key for row in prof.key_averages() if row.device_type.name == "CUDA"))
    """
    )
    assert said["child"].startswith("FORKED: this process was forked after CUDA had started")
    assert said["parent"] == ["after", "before"]


# ---- opprof doctor ------------------------------------------------------------------------------


def doctor(**environment: str) -> str:
    """The line on CUDA."""
    done = run_python("from pytest_opprof.cli.main import main; main(['doctor'])", environment=environment)
    return next(line for line in done.stdout.splitlines() if line.startswith("CUDA"))


@pytest.mark.slow
def test_doctor_says_which_libcupti_it_would_use(fake_cuda_folder: Path) -> None:
    cupti = fake_cuda_folder / "cupti-13" / "libcupti.so.13"
    line = doctor(LD_LIBRARY_PATH=str(fake_cuda_folder), OPPROF_CUPTI_PATH=str(cupti))
    assert line.split() == ["CUDA", "ok", str(cupti), "(API", "130001)"]


def test_doctor_says_why_there_is_no_cuda(fake_cuda_folder: Path) -> None:
    named = doctor(LD_LIBRARY_PATH=str(fake_cuda_folder), OPPROF_CUPTI_PATH="/nowhere/libcupti.so")
    assert "OPPROF_CUPTI_PATH: /nowhere/libcupti.so: cannot open shared object file" in named


@pytest.mark.skipif(has_driver(), reason="there is a driver on this machine")
def test_doctor_says_that_there_is_no_driver() -> None:
    line = doctor()
    assert line.split()[1] == "absent"
    assert "libcuda.so.1 not found" in line


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


def test_tensors_are_the_memory_where_torch_tells_of_them() -> None:
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
