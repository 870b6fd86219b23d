"""Torch's own sampling of ops: what is recorded, and where it is reported."""

import gzip
import json
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof import ExecutionTraceObserver, load_trace, profile, record_function
from pytest_opprof.errors import UsageError
from pytest_opprof.kinds import EventKind
from pytest_opprof.report.trace_tables import trace_title
from pytest_opprof.results.trace_run import run_from_trace

torch = pytest.importorskip("torch")

MANY = 40_000
NOTE = "Sampled: 1% of torch's ops were recorded; counts and sums cover only these"


def run_ops(count: int) -> None:
    ones = torch.ones(1)
    for _ in range(count):
        ones.neg()


def sampled(sampling: float, work: Callable[[], object], **options: Any) -> profile:
    with profile(sampling=sampling, **options) as prof:
        work()
    return prof


def count_of(prof: profile, name: str) -> int:
    return sum(row.count for row in prof.key_averages() if row.key == name)


def expect_near(count: int, *, expected: float) -> None:
    """Within seven standard deviations of a binomial: 1 run in 10^11 is not."""
    assert abs(count - expected) < 7 * math.sqrt(expected)


@pytest.mark.parametrize("sampling", [0.5, 0.01])
def test_the_share_that_was_asked_for_is_recorded(sampling: float) -> None:
    prof = sampled(sampling, lambda: run_ops(MANY))
    expect_near(count_of(prof, "aten::neg"), expected=sampling * MANY)
    assert prof.cycles[-1].recording.stats.sampling == sampling


def test_other_threads_are_sampled_too() -> None:
    def work() -> None:
        threads = [threading.Thread(target=run_ops, args=(MANY // 4,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    prof = sampled(0.01, work)
    expect_near(count_of(prof, "aten::neg"), expected=0.01 * MANY)


def test_ranges_are_all_recorded() -> None:
    def work() -> None:
        for _ in range(200):
            with record_function("ours"), torch.profiler.record_function("torch's"):
                torch.ones(1)

    prof = sampled(0.01, work)
    assert (count_of(prof, "ours"), count_of(prof, "torch's")) == (200, 200)
    recording = prof.cycles[-1].recording
    # A recorded op is inside its recorded ancestors, though an op between may be missing.
    inside = [recording.parent[event] for event in range(len(recording)) if recording.scope[event] == 0]
    assert {recording.name(parent) for parent in inside} <= {"torch's", "aten::ones"}


@pytest.mark.parametrize("options", [{"record_shapes": True}, {"profile_memory": True}, {"with_flops": True}])
def test_sampled_ops_keep_their_details(options: dict[str, bool]) -> None:
    left = torch.ones(2, 3)

    def work() -> None:
        for _ in range(2000):
            torch.mm(left, left.t())

    prof = sampled(0.1, work, **options)
    recording = prof.cycles[-1].recording
    drawn = [event for event in range(len(recording)) if recording.name(event) == "aten::mm"]
    expect_near(len(drawn), expected=200)
    for event in drawn:
        inputs = recording.inputs(event)
        assert (inputs.shapes if inputs else None) == (
            None if "profile_memory" in options else [[2, 3], [3, 2]]
        )
    if "with_flops" in options:
        assert {recording.flops[event] for event in drawn} == {2 * 2 * 3 * 2}
    if "profile_memory" in options:
        assert sum(kind == EventKind.MEMORY for kind in recording.kind) >= 2000  # allocators are not sampled


def test_the_next_window_has_all_ops_again() -> None:
    sampled(0.01, lambda: run_ops(100))
    assert count_of(sampled(1, lambda: run_ops(100)), "aten::neg") == 100
    again = sampled(0.5, lambda: run_ops(MANY))
    expect_near(count_of(again, "aten::neg"), expected=0.5 * MANY)


def test_tables_and_traces_report_the_sampling(tmp_path: Path) -> None:
    prof = sampled(0.01, lambda: run_ops(MANY))
    assert prof.key_averages().table().splitlines()[-1] == NOTE
    assert prof.events().table().splitlines()[-1] == NOTE
    path = tmp_path / "trace.json.gz"
    prof.export_chrome_trace(path)
    assert json.loads(gzip.decompress(path.read_bytes()))["opprof_sampling"] == 0.01
    trace = load_trace(path)
    assert trace.recording.stats.sampling == 0.01
    assert trace.key_averages().table().splitlines()[-1] == NOTE
    assert ", 1% of the ops" in trace_title(trace).text
    assert run_from_trace(trace).tests[0].capture.sampled_ppm == 10_000


def test_full_recording_reports_no_sampling(tmp_path: Path) -> None:
    prof = sampled(1, lambda: run_ops(10))
    assert "Sampled" not in prof.key_averages().table()
    prof.export_chrome_trace(tmp_path / "trace.json")
    assert "opprof_sampling" not in json.loads((tmp_path / "trace.json").read_bytes())


def test_an_execution_trace_needs_every_op(tmp_path: Path) -> None:
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "et.json"))
    with pytest.raises(UsageError, match="an execution trace needs every op"):
        profile(sampling=0.5, execution_trace_observer=observer).start()
    sampled(1, lambda: run_ops(1))  # nothing is left open
