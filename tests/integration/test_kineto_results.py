"""`kineto_results` of our profiles and traces: flat events and a tree, and `BasicEvaluation` over both."""

import time
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof import (
    BasicEvaluation,
    EventList,
    KinetoRecording,
    _KinetoProfile,
    autograd,
    load_trace,
    profile,
    record_function,
)
from pytest_opprof.analysis.evaluation import traverse_dfs
from pytest_opprof.events.kineto_event import told
from pytest_opprof.kinds import EventKind

TRACES = (
    "alexnet_inference_cuda.json.gz",
    "event_sync_multi_stream_cuda.json.gz",
    "minitoy_training_rocm.json.gz",
    "nccl_training_rank0_cuda.json.gz",
    "sampled_training_cuda.json.gz",
    "triton_kernel_cuda.json.gz",
)
MOST = 300  # events of a trace that are checked one by one
CALLS = (EventKind.RUNTIME, EventKind.DRIVER)


def recorded() -> Any:
    with profile() as prof, record_function("outer"):
        with record_function("inner"):
            pass
        with record_function("inner"):
            pass
    return prof


def test_event_tree_matches_the_ranges() -> None:
    (outer,) = recorded().kineto_results.experimental_event_tree()
    assert [one.name for one in traverse_dfs([outer])] == ["outer", "inner", "inner"]
    first, second = outer.children
    assert first.parent == outer
    assert first != second
    assert len({outer, first, second, *outer.children}) == 3
    assert outer.parent is None
    assert outer.start_time_ns <= first.start_time_ns <= first.end_time_ns <= second.start_time_ns
    assert first.end_time_ns == first.start_time_ns + first.duration_time_ns
    assert outer.kind is EventKind.RANGE
    assert (outer.overload_name, outer.children[0].children) == ("", [])
    assert repr(outer) == "<TreeEvent 'outer' id=1>"
    assert (outer == 1) is False


def test_flat_events_and_the_tree_are_the_same_events() -> None:
    results = recorded().kineto_results
    flat = [(one.correlation_id(), one.name(), one.start_ns(), one.duration_ns()) for one in results.events()]
    tree = traverse_dfs(results.experimental_event_tree())
    assert sorted(flat) == sorted(
        (one.correlation_id, one.name, one.start_time_ns, one.duration_time_ns) for one in tree
    )


def test_torch_makes_its_events_of_ours(torch: Any) -> None:
    with _KinetoProfile(record_shapes=True) as prof:
        torch.ones(2).add(1)
    results: Any = prof.kineto_results
    events = results.events()
    methods = {name for name in dir(torch._C._autograd._KinetoEvent) if not name.startswith("_")}
    assert all(callable(getattr(events[0], method)) for method in methods)
    parsed = torch.autograd.profiler.profile()._parse_kineto_results(results)
    assert [(event.name, event.input_shapes) for event in parsed] == [
        (event.name, event.input_shapes) for event in prof.events().as_torch()
    ]


def test_times_count_from_the_epoch() -> None:
    before = time.time_ns()
    results = recorded().kineto_results
    starts = [one.start_ns() for one in results.events()]
    assert before - 10**9 < results.trace_start_ns() <= min(starts)
    assert max(one.end_ns() for one in results.events()) < time.time_ns() + 10**9


def test_profiles_have_results_when_they_are_done() -> None:
    prof = _KinetoProfile()
    assert prof.kineto_results is None
    assert prof.profiler is prof
    older = autograd.profile()
    with older:
        early = older.kineto_results
    assert early is None
    assert older.kineto_results is not None
    assert autograd.profile(enabled=False).kineto_results is None


def test_open_ranges_last_to_the_windows_end() -> None:
    left = record_function("left open")
    with profile() as prof:
        left.__enter__()
    left.__exit__(None, None, None)
    (event,) = prof.kineto_results.experimental_event_tree()  # type: ignore[union-attr]  # it is done
    (flat,) = prof.kineto_results.events()  # type: ignore[union-attr]  # the same
    assert event.duration_time_ns == flat.duration_ns() > 0


def test_self_times_match_the_columns() -> None:
    prof = recorded()
    recording = prof.cycles[-1].recording
    metrics = BasicEvaluation(prof).metrics
    assert {key.event.id - 1: one.self_time_ns for key, one in metrics.items()} == dict(
        enumerate(recording.self_ns)
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", TRACES)
def test_queue_of_a_real_trace_matches_its_columns(traces: Path, name: str) -> None:
    trace = load_trace(traces / name)
    recording = trace.recording
    evaluation = BasicEvaluation(trace)
    kernels = [row for row, kind in enumerate(recording.kind) if kind == EventKind.KERNEL]
    tied = [row for row in kernels if recording.launcher[row] >= 0]
    calls = {recording.launcher[row] for row in tied}
    assert {recording.kind[call] for call in calls} <= {*CALLS}
    begin = recording.trace_start_ns
    told_points = list(zip(evaluation.queue_depth_list, evaluation.cuda_events, strict=True))
    for point, event in told_points[:: 1 + len(told_points) // MOST]:
        now = point.start - begin
        launched = [row for row in tied if recording.start_ns[recording.launcher[row]] <= now]
        waiting = len(launched) - sum(recording.start_ns[row] <= now for row in tied)
        assert point.queue_depth == max(waiting, 0), event.name()
    assert sum(told(one, "activity_type") == "kernel" for one in evaluation.cuda_events) == len(kernels)
    assert max(point.queue_depth for point in evaluation.queue_depth_list) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", TRACES)
def test_idle_time_excludes_a_real_traces_kernels(traces: Path, name: str) -> None:
    trace = load_trace(traces / name)
    kernels = [
        (event.start_ns(), event.end_ns())
        for event in trace.kineto_results.events()
        if told(event, "activity_type") == "kernel"
    ]
    evaluation = BasicEvaluation(trace)
    assert any(one.idle_time_ns for one in evaluation.metrics.values())
    for key in evaluation.event_keys[:: 1 + len(evaluation.event_keys) // MOST]:
        one, event = evaluation.metrics[key], key.event
        busy = max(
            (min(end, event.end_time_ns) - max(start, event.start_time_ns) for start, end in kernels),
            default=0,
        )
        assert 0 <= one.idle_time_ns <= event.duration_time_ns - max(busy, 0)


@pytest.mark.parametrize("name", TRACES[:3])
def test_results_read_by_our_own_reader_have_the_same_sums(traces: Path, name: str) -> None:
    trace = load_trace(traces / name)
    again = EventList([KinetoRecording(trace.kineto_results)])

    def sums(rows: Any) -> list[tuple[Any, ...]]:
        return sorted(
            (row.key, row.count, row.self_cpu_time_total, row.cpu_time_total, row.self_device_time_total)
            for row in rows
        )

    assert sums(again.key_averages()) == sums(trace.key_averages())
