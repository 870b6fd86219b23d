"""`BasicEvaluation`: PyTorch's published results, and correct ones where torch's class is wrong."""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.kineto.evaluations import (
    CUDA,
    Node,
    TextNamed,
    Told,
    profile_of,
    published_profile,
    recorded_profile,
)

from pytest_opprof.analysis.evaluation import (
    BasicEvaluation,
    EventKey,
    EventMetrics,
    argmax,
    index_of_first_match,
    source_code_location,
    traverse_bfs,
    traverse_dfs,
)
from pytest_opprof.analysis.kernel_queue import Interval


def line(*depths: int) -> list[Told]:
    """Launches and kernels such that the queue has these depths, one point per microsecond."""
    told: list[Told] = []
    number, launched, before = 0, 0, 0
    for place, depth in enumerate(depths):
        if depth > before:
            number += 1
            told.append(Told("cudaLaunchKernel", 1000 * place, 10, number=number))
        else:
            launched += 1
            told.append(Told("gemm", 1000 * place, 500, device=CUDA, number=launched))
        before = depth
    return told


# ---- published by PyTorch ----


def test_published_queue_depths_are_reproduced() -> None:
    evaluation = BasicEvaluation(published_profile())
    assert [point.queue_depth for point in evaluation.queue_depth_list] == [
        1,
        2,
        3,
        4,
        5,
        4,
        3,
        2,
        1,
        0,
        1,
        0,
    ]
    assert [event.name for event in evaluation.cuda_events] == [
        *["cudaLaunchKernel"] * 5,
        *["GPU"] * 5,
        "cudaLaunchKernel",
        "GPU",
    ]
    depths = [evaluation.metrics[key].queue_depth for key in evaluation.event_keys]
    assert depths == [0, 0, 0, 0, 1, 2, 3, 4, 5, 4, 2, 1]


def test_published_idle_times_are_reproduced() -> None:
    evaluation = BasicEvaluation(published_profile())
    idle = [evaluation.metrics[key].idle_time_ns for key in evaluation.event_keys]
    assert idle == [100_000] * 4 + [0] * 7 + [100_000]


def test_published_overlap_is_reproduced() -> None:
    intervals = [Interval(*one) for one in ((0, 9), (1, 2), (2, 3), (3, 4), (4, 5), (8, 12))]
    event = EventKey(Node("Event 1", 1, 5, 5))
    assert event.intervals_overlap(intervals) == 5
    assert event.intervals_overlap(intervals) == 5


def test_published_optimizable_events_are_reproduced(traces: Path) -> None:
    told, tree = json.loads((traces / "torch_basic_evaluation_events.json").read_text())
    evaluation = BasicEvaluation(recorded_profile(told, tree))
    found = evaluation.get_optimizable_events(2, print_enable=False)
    assert [str(key) for key in found] == ["<built-in function _cuda_synchronize>", "aten::copy_"]
    for key, metrics in evaluation.metrics.items():
        inside = sum(child.duration_time_ns for child in key.event.children)
        assert metrics.self_time_ns == key.event.duration_time_ns - inside


def test_no_device_leaves_an_empty_queue() -> None:
    evaluation = BasicEvaluation(profile_of([], [Node("aten::mm", 1, 0, 10)]))
    assert evaluation.compute_queue_depth() == []
    assert [metrics.idle_time_ns for metrics in evaluation.metrics.values()] == [0]
    assert evaluation.rank_events(3) == []


# ---- where torch is wrong ----


def test_event_names_may_be_methods() -> None:
    prof = profile_of(line(1, 2, 1, 0), [Node("aten::mm", 1, 0, 4000)])
    assert [one.queue_depth for one in BasicEvaluation(prof).queue_depth_list] == [1, 2, 1, 0]


def test_launches_of_one_op_have_a_kernel_each() -> None:
    told = [
        Told("cudaLaunchKernel", 0, 5, number=7, cause=1),
        Told("cudaLaunchKernel", 10, 5, number=8, cause=1),
        Told("gemm", 20, 5, device=CUDA, number=7, cause=1),
        Told("gemm", 30, 5, device=CUDA, number=8, cause=1),
    ]
    evaluation = BasicEvaluation(profile_of(told, []))
    assert [one.queue_depth for one in evaluation.queue_depth_list] == [1, 2, 1, 0]


def test_launches_of_one_op_share_kernels_without_numbers() -> None:
    told = [
        TextNamed("cudaLaunchKernel", 0, 5, 1, 0),
        TextNamed("cudaLaunchKernel", 10, 5, 1, 0),
        *(TextNamed("gemm", start, 5, 1, CUDA) for start in (20, 30, 40)),
    ]
    evaluation = BasicEvaluation(profile_of(told, []))
    assert [one.queue_depth for one in evaluation.queue_depth_list] == [1, 3, 2, 1, 0]


@pytest.mark.parametrize(
    "name",
    [
        "cudaLaunchKernel_v7000",
        "cuLaunchKernelEx",
        "cudaLaunchCooperativeKernelMultiDevice",
        "cudaGraphLaunch",
        "hipModuleLaunchKernel",
        "hipExtModuleLaunchKernel",
        "urEnqueueKernelLaunch",
    ],
)
def test_each_kind_of_launch_fills_the_queue(name: str) -> None:
    kernels = [Told("gemm", 20 + start, 5, device=CUDA, number=1) for start in range(3)]
    evaluation = BasicEvaluation(profile_of([Told(name, 0, 5, number=1), *kernels], []))
    assert [one.queue_depth for one in evaluation.queue_depth_list] == [3, 2, 1, 0]


def test_driver_call_inside_a_launch_is_not_a_second_launch() -> None:
    told = [
        Told("cudaLaunchKernel", 0, 9, number=1),
        Told("cuLaunchKernel", 2, 5, number=1, activity="cuda_driver"),
        Told("gemm", 20, 5, device=CUDA, number=1),
    ]
    evaluation = BasicEvaluation(profile_of(told, []))
    assert [one.name() for one in evaluation.cuda_events] == ["cudaLaunchKernel", "gemm"]


def test_copies_waits_and_annotations_are_not_kernels() -> None:
    told = [
        Told("Memcpy HtoD", 0, 5, device=CUDA, activity="gpu_memcpy"),
        Told("Memset", 0, 5, device=CUDA, activity="gpu_memset"),
        Told("Stream Wait Event", 0, 5, device=CUDA, activity="cuda_sync"),
        Told("forward", 0, 5, device=CUDA, annotation=True),
        Told("mem_efficient_attention", 9, 5, device=CUDA),
        Told("cudaLaunchHostFunc", 9, 5),
        Told("my_cudaLaunchKernel_op", 9, 5, activity="cpu_op"),
    ]
    found = BasicEvaluation(profile_of(told, [])).cuda_events
    assert [one.name() for one in found] == ["mem_efficient_attention"]


def test_kernels_of_earlier_launches_do_not_empty_the_queue() -> None:
    told = [Told("gemm", 5, 5, device=CUDA, number=99), *line(1, 2)]
    evaluation = BasicEvaluation(profile_of(told, [Node("aten::mm", 1, 500, 1)]))
    assert [metrics.queue_depth for metrics in evaluation.metrics.values()] == [0]
    # The second launch has no recorded kernel: the queue does not wait for it.
    assert [one.queue_depth for one in evaluation.queue_depth_list] == [0, 0, 0]


def test_out_of_order_kernels_keep_the_queue() -> None:
    told = [
        Told("cudaLaunchKernel", 0, 5, number=1),
        Told("cudaLaunchKernel", 10, 5, number=2),
        Told("gemm", 20, 5, device=CUDA, number=2),
        Told("gemm", 40, 5, device=CUDA, number=1),
    ]
    evaluation = BasicEvaluation(profile_of(told, []))
    assert [one.queue_depth for one in evaluation.queue_depth_list] == [1, 2, 1, 0]


def test_running_kernels_are_not_idle_time() -> None:
    # On two streams: the short kernel starts last, the long one still runs.
    told = [
        Told("cudaLaunchKernel", 0, 1, number=1),
        Told("cudaLaunchKernel", 2, 1, number=2),
        Told("long", 5, 95, device=CUDA, number=1),
        Told("short", 6, 4, device=CUDA, number=2),
    ]
    tree = [Node("aten::mm", 1, 0, 200)]
    (ours,) = BasicEvaluation(profile_of(told, tree)).metrics.values()
    assert ours.idle_time_ns == 100
    assert ours.fraction_idle_time == 0.5


def test_overlaps_are_exact() -> None:
    event = EventKey(Node("event", 1, 0, 100))
    intervals = [Interval(*one) for one in ((0, 50), (10, 20), (60, 70))]
    assert event.intervals_overlap(intervals) == 60


def test_kernels_in_the_tree_keep_their_time_to_themselves() -> None:
    kernel = Node("gemm", 3, 60, 500)
    call = Node("cudaLaunchKernel", 2, 40, 10).put(kernel)
    op = Node("aten::mm", 1, 0, 100).put(call)
    prof = profile_of([Told("gemm", 60, 500, device=CUDA, number=4)], [op])
    ours = {str(key): one.self_time_ns for key, one in BasicEvaluation(prof).metrics.items()}
    assert ours == {"aten::mm": 90, "cudaLaunchKernel": 10, "gemm": 500}


def test_every_falling_phase_is_ranked() -> None:
    told = line(1, 2, 3, 4, 3, 2, 1, 0, 1, 2, 3, 4, 3, 2, 1, 0)
    tree = [Node("first", 1, 4000, 2000), Node("second", 2, 12_000, 2000), Node("before", 3, 0, 1000)]
    found = {str(key) for key in BasicEvaluation(profile_of(told, tree)).rank_events(9)}
    assert found == {"first", "second"}


def test_kernels_are_not_ranked() -> None:
    told = line(1, 2, 3, 4, 3, 2, 1, 0)
    op = Node("aten::mm", 1, 0, 9000).put(Node("gemm", 2, 4000, 500))
    assert [str(key) for key in BasicEvaluation(profile_of(told, [op])).rank_events(9)] == ["aten::mm"]


def test_events_that_are_alike_have_a_ranking() -> None:
    told = line(1, 2, 3, 4, 3, 2, 1, 0)
    evaluation = BasicEvaluation(profile_of(told, [Node(f"op{one}", one, 0, 9000) for one in (1, 2, 3)]))
    assert [str(key) for key in evaluation.rank_events(2)] == ["op3", "op2"]


# ---- the rest ----


def test_optimizable_events_are_printed_as_torch_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    op = Node("aten::mm", 2, 5000, 4000)
    call = Node("model.py(3): forward", 1, 1000, 8500).put(op)
    evaluation = BasicEvaluation(profile_of(line(1, 2, 3, 4, 3, 2, 1, 0), [call]))
    evaluation.get_optimizable_events(1)
    assert capsys.readouterr().out == (
        "Optimizable events:\n" + "-" * 80 + "\nEvent:                aten::mm\n"
        "Source code location: model.py(3): forward\n"
        "Percentage idle time: 37.50%\n" + "-" * 80 + "\n"
    )
    BasicEvaluation(profile_of([], [])).get_optimizable_events()
    assert capsys.readouterr().out == "No events to optimize\n\n"


def test_missing_python_location_is_reported() -> None:
    assert source_code_location(Node("aten::mm", 1, 0, 1)) == "No source code location found"
    assert source_code_location(None) == "No source code location found"


def test_two_events_of_one_id_are_refused() -> None:
    with pytest.raises(AssertionError, match="Duplicate id: 1, b"):
        BasicEvaluation(profile_of([], [Node("b", 1, 0, 1), Node("a", 1, 0, 1)]))


def test_profile_without_results_is_refused() -> None:
    with pytest.raises(AssertionError, match="kineto_results must not be None"):
        BasicEvaluation(SimpleNamespace(kineto_results=None))


def test_results_are_found_in_a_profiler() -> None:
    prof = SimpleNamespace(profiler=published_profile())
    assert len(BasicEvaluation(prof).events) == 12


def test_event_keys_compare_by_id() -> None:
    assert EventKey(Node("a", 1, 0, 1)) == EventKey(Node("b", 1, 5, 9))
    assert EventKey(Node("a", 1, 0, 1)) != EventKey(Node("a", 2, 0, 1))
    assert EventKey(Node("a", 1, 0, 1)) != 1
    assert repr(EventKey(Told("a", 0, 1))) == "a"


def test_fraction_of_zero_time_is_zero() -> None:
    assert EventMetrics(idle_time_ns=4).fraction_idle_time == 0
    assert math.isclose(EventMetrics(duration_time_ns=8, idle_time_ns=4).fraction_idle_time, 0.5)


def test_trees_are_walked_in_both_orders() -> None:
    tree = [
        Node("a", 1, 0, 9).put(Node("b", 2, 0, 4).put(Node("c", 3, 0, 1)), Node("d", 4, 5, 1)),
        Node("e", 5, 9, 1),
    ]
    assert "".join(node.name for node in traverse_dfs(tree)) == "abcde"
    assert "".join(node.name for node in traverse_bfs(tree)) == "aebdc"
    only = traverse_dfs(tree, children_fn=lambda node: node.children[:1])
    assert "".join(node.name for node in only) == "abce"


def test_first_match_is_within_bounds() -> None:
    assert index_of_first_match([1, 2, 3, 2], lambda one: one == 2) == 1
    assert index_of_first_match([1, 2, 3, 2], lambda one: one == 2, start=2) == 3
    assert index_of_first_match([1, 2, 3, 2], lambda one: one == 2, start=2, end=3) is None
    assert index_of_first_match([1], lambda one: one == 2, end=9) is None


def test_argmax_is_an_index_into_the_whole_list() -> None:
    assert argmax([1, 5, 3, 5]) == 1
    assert argmax([1, 5, 3, 5], start=2) == 3
    assert argmax([1, 5, 3, 5], start=2, end=3) == 2
    assert argmax([1, -5, 3], key=abs) == 1
    assert argmax([]) is None
    assert argmax([1], start=4) is None


def calls_of(work: Callable[[], object]) -> int:
    """How many Python and C functions some work calls."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def test_twice_the_events_take_twice_the_work() -> None:
    def evaluate(count: int) -> Callable[[], object]:
        told = line(*[1, 2, 3, 4, 3, 2, 1, 0] * (count // 8))
        named = [
            TextNamed(one.name(), one.start_ns(), one.duration_ns(), one.correlation_id(), one.device_type())
            for one in told
        ]
        tree = [Node("aten::mm", number, 1000 * number, 900) for number in range(1, count)]
        return lambda: BasicEvaluation(profile_of(named, tree)).rank_events(5)

    assert calls_of(evaluate(1600)) < 2.2 * calls_of(evaluate(800))
