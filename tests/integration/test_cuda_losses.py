"""CUDA records that a profile lacks, or cannot record at all, are reported."""

import pytest
from support.cuda.profiled_cuda import PROGRAM, answer
from support.programs.children import answer_of, run_python

pytestmark = pytest.mark.usefixtures("fake_cuda")


def test_device_losses_are_counted() -> None:
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


def test_graph_launches_miss_no_kernels() -> None:
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


def test_a_watched_test_after_a_profiled_one_records_only_ops() -> None:
    """Its window would otherwise have all that the last profile asked for."""
    said = answer(
        """
    from pytest_opprof.capture.collector import Collector
    with profile(activities=[CPU, CUDA]):
        step()
    collector = Collector.instance()
    collector.watch()
    step()
    recording = collector.peek()
    collector.unwatch()
    said(device=recording.stats.device_events, ranges=len(recording))
    """
    )
    assert said == {"device": 0, "ranges": 2}


# ---- where it cannot be recorded ----------------------------------------------------------------

REFUSALS = {
    "another subscriber": ('cuda.other_subscriber("nsys")', "another profiler"),
    "no permission": ('cuda.fail("cuptiActivityEnable", 35)', "NVreg_RestrictProfilingToAdminUsers=0"),
    "no device": ('cuda.without_gpu("12")', "cannot record in this process"),
    "an old driver": ("cuda.driver.fake_cuda_driver_version(11080)", "too old"),
    "an old libcupti": ('cuda.control("version", 17)', "older than CUDA 12.0"),
}


@pytest.mark.parametrize(("how", "why"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refused_cuda_is_reported_and_the_cpu_recorded(how: str, why: str) -> None:
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


def test_torch_profiler_keeps_cupti() -> None:
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
def test_failed_flush_is_reported(nth: int) -> None:
    """Nobody knows which records it kept back."""
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


def test_unstarted_cuda_is_reported() -> None:
    done = run_python(
        PROGRAM.replace("MAJOR", "12").replace("device=0", "device=None")
        + """
    with profile(activities=[CPU, CUDA]):
        pass
    """
    )
    assert done.returncode != 0
    assert "nothing in this process has started CUDA yet" in done.stderr


def test_only_cuda_that_starts_in_a_recording_is_missing_from_it() -> None:
    """Its library may be loaded and never used."""
    said = answer_of(
        PROGRAM.replace("MAJOR", "12").replace("device=0", "device=None")
        + """
    from pytest_opprof.capture.collector import Collector
    collector = Collector.instance()
    collector.open(sources=frozenset({"ranges", "cuda-if-used"}))
    collector.start()
    collector.stop()
    unused = collector.problems
    collector.start()
    cuda.use_device(0)
    collector.stop()
    said(unused=unused, started=collector.problems)
    """
    )
    assert said["unused"] == {}
    assert said["started"]["cuda"].startswith("CUDA started during the recording")


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
