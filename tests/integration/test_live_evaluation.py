"""`BasicEvaluation` over kernels recorded live from the fake CUDA: ours, and torch's own class."""

from typing import Any

import pytest
from support.programs.children import answer_of

pytestmark = pytest.mark.usefixtures("fake_cuda")

# Two devices, two streams, a graph and a copy; a launch or two before the window.
PROGRAM = """
    import json
    from support.cuda import fake_cuda

    cuda = fake_cuda.load(major=MAJOR)
    cuda.launch("before", ns=1000)

    from pytest_opprof import BasicEvaluation, ProfilerActivity, profile, record_function
    from pytest_opprof.events.kineto_event import told

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        with record_function("fill"):
            for place in range(6):
                cuda.launch("gemm", stream=7 + place % 2, device=place % 2, ns=300_000)
            cuda.graph("graph kernel", nodes=3, ns=1000)
            cuda.memcpy(fake_cuda.HTOD, 4096, ns=1000)
        with record_function("wait"):
            for device in (0, 1):
                cuda.synchronize(device=device)
        with record_function("after"):
            pass

    events = prof.kineto_results.events()
"""


def answer(program: str, *, major: int) -> Any:
    return answer_of(PROGRAM.replace("MAJOR", str(major)) + program)


@pytest.mark.parametrize("major", [12, 13])
def test_queue_depth_matches_the_launches(major: int) -> None:
    said = answer(
        """
    evaluation = BasicEvaluation(prof)
    kernels = [one for one in events if told(one, "activity_type") == "kernel"]
    calls = {}
    for one in events:
        if told(one, "activity_type") in ("cuda_runtime", "cuda_driver"):
            calls.setdefault(one.correlation_id(), one)
    waiting = [
        sum(calls[one.correlation_id()].start_ns() <= point.start for one in kernels)
        - sum(one.start_ns() <= point.start for one in kernels)
        for point in evaluation.queue_depth_list
    ]
    print(json.dumps({
        "kernels": len(kernels),
        "points": len(evaluation.queue_depth_list),
        "same": [point.queue_depth for point in evaluation.queue_depth_list] == waiting,
        "last": waiting[-1],
        "deepest": max(waiting),
        "after is idle": all(
            one.idle_time_ns == one.duration_time_ns
            for key, one in evaluation.metrics.items()
            if str(key) == "after"
        ),
        "inside": sorted({child.name for key in evaluation.metrics if str(key) == "fill" for child in key.event.children}),
    }))
    """,
        major=major,
    )
    deepest = said.pop("deepest")
    assert deepest >= 3  # the graph's kernels, regardless of others in the queue
    inside = said.pop("inside")
    assert any("Launch" in name for name in inside)
    assert said == {"kernels": 9, "points": 16, "same": True, "last": 0, "after is idle": True}


@pytest.mark.slow
def test_torchs_own_class_reads_the_same_events(torch: Any) -> None:
    said = answer(
        """
    from torch.profiler import _utils

    def numbers(evaluation):
        return [[key.event.id, one.duration_time_ns] for key, one in evaluation.metrics.items()]

    theirs, ours = _utils.BasicEvaluation(prof), BasicEvaluation(prof)
    print(json.dumps({"same": numbers(theirs) == numbers(ours), "points": len(theirs.queue_depth_list)}))
    """,
        major=12,
    )
    assert said["same"]
    assert said["points"] >= 9
