"""`BasicEvaluation` with ``compat="torch"`` against torch's own class, number by number."""

import inspect
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kineto.evaluations import (
    burst_profile,
    profile_of,
    published_profile,
    random_profile,
    recorded_profile,
)

from pytest_opprof.analysis import torch_evaluation
from pytest_opprof.analysis.evaluation import (
    BasicEvaluation,
    EventKey,
    Interval,
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

# Torch tells of a single event that it has no deviation, and goes on.
pytestmark = pytest.mark.filterwarnings(r"ignore:std(_mean)?\b:UserWarning")

seeds = st.integers(0, 2**32 - 1)
times = st.integers(0, 60)


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
        # A profile makes its events anew for whoever asks.
        [(one.start_ns(), one.duration_ns(), one.linked_correlation_id()) for one in evaluation.cuda_events],
    ]


def check(prof: Any) -> Any:
    wanted = torchs.BasicEvaluation(prof)
    ours = BasicEvaluation(prof, compat="torch")
    assert numbers(ours) == numbers(wanted)
    for length in (1, 3, 1000):
        ranked = [key.event.id for key in ours.rank_events(length)]
        assert ranked == [key.event.id for key in wanted.rank_events(length)]
    return ours


@given(seeds)
def test_random_profiles_have_torchs_numbers(seed: int) -> None:
    check(random_profile(seed, of_torch))


@given(seeds)
def test_bursts_have_torchs_ranking(seed: int) -> None:
    check(burst_profile(seed, of_torch))


def test_bursts_have_something_to_rank() -> None:
    found = [len(BasicEvaluation(burst_profile(seed)).rank_events(1000)) for seed in range(40)]
    assert sum(count > 2 for count in found) > 20


@pytest.mark.parametrize(
    "make", [published_profile, lambda of: burst_profile(5, of)], ids=["nothing", "something"]
)
def test_text_is_torchs(make: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    prof = make(of_torch)
    torchs.BasicEvaluation(prof).get_optimizable_events(3)
    wanted = capsys.readouterr().out
    BasicEvaluation(prof, compat="torch").get_optimizable_events(3)
    assert capsys.readouterr().out == wanted


def test_recorded_profile_has_torchs_numbers(traces: Path) -> None:
    told, tree = json.loads((traces / "torch_basic_evaluation_events.json").read_text())
    check(recorded_profile(told, tree, of_torch))


def test_torchs_own_profile_has_torchs_numbers() -> None:
    with torch.profiler.profile(with_stack=True, profile_memory=True) as prof:
        torch.ones(3, requires_grad=True).sum().backward()
    ours = check(prof.profiler)
    assert len(ours.events) > 5
    assert len(BasicEvaluation(prof).events) == len(ours.events)


@given(
    times,
    times,
    st.lists(st.builds(lambda one, other: (min(one, other), max(one, other)), times, times), max_size=9),
)
def test_overlaps_are_torchs(start: int, duration: int, given_intervals: list[tuple[int, int]]) -> None:
    event = published_profile().kineto_results.experimental_event_tree()[0]
    event.start_time_ns, event.duration_time_ns = start, duration
    ours = [Interval(*one) for one in given_intervals]
    theirs = [torchs.Interval(*one) for one in given_intervals]
    wanted = torchs.EventKey(event).intervals_overlap(theirs)
    assert EventKey(event).intervals_overlap(ours, compat="torch") == wanted
    assert [(one.start, one.end) for one in ours] == [(one.start, one.end) for one in theirs]


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 2**62)), min_size=1, max_size=40))
def test_scores_are_torchs(values: list[tuple[float, int]]) -> None:
    idle = torch.tensor([one for one, _ in values], dtype=torch.float32)
    own = torch.tensor([one for _, one in values], dtype=torch.float32)
    idle_std, idle_mean = torch.std_mean(idle)
    own_std, own_mean = torch.std_mean(own)
    wanted = ((idle - idle_mean) / idle_std + 0.6 * ((own - own_mean) / own_std)).tolist()
    ours = torch_evaluation.scores([one for one, _ in values], [one for _, one in values])
    for mine, theirs in zip(ours, wanted, strict=True):
        assert mine == theirs or (math.isnan(mine) and math.isnan(theirs))


@given(seeds)
def test_walks_are_torchs(seed: int) -> None:
    tree = random_profile(seed).kineto_results.experimental_event_tree()
    assert [one.id for one in traverse_dfs(tree)] == [one.id for one in torchs.traverse_dfs(tree)]
    assert [one.id for one in traverse_bfs(tree)] == [one.id for one in torchs.traverse_bfs(tree)]
    for event in traverse_dfs(tree):
        assert source_code_location(event) == torchs.source_code_location(event)


def test_check_fails_where_numbers_differ() -> None:
    prof = random_profile(3, of_torch)
    other = profile_of(prof.kineto_results.events(), prof.kineto_results.experimental_event_tree()[:1])
    assert numbers(BasicEvaluation(prof)) != numbers(BasicEvaluation(other))


def test_our_profile_has_torchs_numbers() -> None:
    from pytest_opprof import profile, record_function

    with profile(with_stack=True, profile_memory=True) as prof, record_function("outer"):
        torch.ones(3, requires_grad=True).sum().backward()
    assert len(check(prof).events) > 5


@pytest.mark.parametrize(
    "name",
    ["alexnet_inference_cuda.json.gz", "event_sync_multi_stream_cuda.json.gz", "triton_kernel_cuda.json.gz"],
)
def test_our_traces_have_torchs_numbers(traces: Path, name: str) -> None:
    from pytest_opprof import load_trace

    ours = check(load_trace(traces / name))
    assert ours.cuda_events
