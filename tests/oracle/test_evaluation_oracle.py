"""`BasicEvaluation` against torch's class where torch's is right, and torch's class on our profiles."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kineto.evaluations import (
    profile_of,
    published_profile,
    random_profile,
    recorded_profile,
)

from pytest_opprof.analysis.evaluation import (
    BasicEvaluation,
    source_code_location,
    traverse_bfs,
    traverse_dfs,
)

torch = pytest.importorskip("torch")
from torch.profiler import _utils as torchs  # noqa: E402  # only where torch is

if not hasattr(torchs, "BasicEvaluation"):
    pytest.skip("this torch has no BasicEvaluation any longer", allow_module_level=True)

if "cudaLaunchKernelExC" not in inspect.getsource(torchs.BasicEvaluation):
    pytest.skip("this torch's BasicEvaluation knows one way to launch a kernel", allow_module_level=True)

# Torch warns that a single event has no deviation, and continues.
pytestmark = pytest.mark.filterwarnings(r"ignore:std(_mean)?\b:UserWarning")

seeds = st.integers(0, 2**32 - 1)


def of_torch(device: int) -> Any:
    """Torch's class compares devices with its own enumeration."""
    return torch.profiler.DeviceType.CUDA if device else torch.profiler.DeviceType.CPU


def numbers(evaluation: Any) -> list[Any]:
    return [
        [
            (key.event.id, one.duration_time_ns, one.self_time_ns, one.idle_time_ns, one.queue_depth)
            for key, one in evaluation.metrics.items()
        ],
        [key.event.id for key in evaluation.event_keys],
        [(one.start, one.end, one.queue_depth) for one in evaluation.queue_depth_list],
        # a profile makes new events on each access
        [(one.start_ns(), one.duration_ns(), one.linked_correlation_id()) for one in evaluation.cuda_events],
    ]


def check(prof: Any) -> Any:
    wanted = torchs.BasicEvaluation(prof)
    ours = BasicEvaluation(prof)
    assert numbers(ours) == numbers(wanted)
    return ours


@given(seeds)
def test_random_profiles_match_torchs_order_and_self_times(seed: int) -> None:
    prof = random_profile(seed, of_torch)
    ours, wanted = BasicEvaluation(prof), torchs.BasicEvaluation(prof)
    assert [(key.event.id, one.duration_time_ns, one.self_time_ns) for key, one in ours.metrics.items()] == [
        (key.event.id, one.duration_time_ns, one.self_time_ns) for key, one in wanted.metrics.items()
    ]
    assert [key.event.id for key in ours.event_keys] == [key.event.id for key in wanted.event_keys]


def test_published_profile_matches_torch(capsys: pytest.CaptureFixture[str]) -> None:
    prof = published_profile(of_torch)
    check(prof).get_optimizable_events(3)
    ours = capsys.readouterr().out
    torchs.BasicEvaluation(prof).get_optimizable_events(3)
    assert capsys.readouterr().out == ours


def test_recorded_profile_matches_torchs_optimizable_events(traces: Path) -> None:
    told, tree = json.loads((traces / "torch_basic_evaluation_events.json").read_text())
    prof = recorded_profile(told, tree, of_torch)
    ours, wanted = (
        [(str(key), source_code_location(key.event)) for key in made(prof).rank_events(2)]
        for made in (BasicEvaluation, torchs.BasicEvaluation)
    )
    assert len(ours) == 2
    assert ours == wanted


def test_torch_profile_matches_torch() -> None:
    with torch.profiler.profile(with_stack=True, profile_memory=True) as prof:
        torch.ones(3, requires_grad=True).sum().backward()
    ours = check(prof.profiler)
    assert len(ours.events) > 5
    assert len(BasicEvaluation(prof).events) == len(ours.events)


@given(seeds)
def test_tree_walks_match_torchs(seed: int) -> None:
    tree = random_profile(seed).kineto_results.experimental_event_tree()
    assert [one.id for one in traverse_dfs(tree)] == [one.id for one in torchs.traverse_dfs(tree)]
    assert [one.id for one in traverse_bfs(tree)] == [one.id for one in torchs.traverse_bfs(tree)]
    for event in traverse_dfs(tree):
        assert source_code_location(event) == torchs.source_code_location(event)


def test_check_fails_where_numbers_differ() -> None:
    prof = random_profile(3, of_torch)
    other = profile_of(prof.kineto_results.events(), prof.kineto_results.experimental_event_tree()[:1])
    assert numbers(BasicEvaluation(prof)) != numbers(BasicEvaluation(other))


def test_our_profile_matches_torch() -> None:
    from pytest_opprof import profile, record_function

    with profile(with_stack=True, profile_memory=True) as prof, record_function("outer"):
        torch.ones(3, requires_grad=True).sum().backward()
    assert len(check(prof).events) > 5


@pytest.mark.parametrize(
    "name",
    ["alexnet_inference_cuda.json.gz", "event_sync_multi_stream_cuda.json.gz", "triton_kernel_cuda.json.gz"],
)
def test_torchs_class_reads_our_traces(traces: Path, name: str) -> None:
    from pytest_opprof import load_trace

    loaded = load_trace(traces / name)
    ours, theirs = BasicEvaluation(loaded), torchs.BasicEvaluation(loaded)
    assert ours.cuda_events
    assert [key.event.id for key in ours.event_keys] == [key.event.id for key in theirs.event_keys]
    assert [one.duration_time_ns for one in ours.metrics.values()] == [
        one.duration_time_ns for one in theirs.metrics.values()
    ]
