"""The cost that recording adds to a launch, per profiler, in separate processes.

``python -m gpu.launch_cost ours|torch``.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

from gpu.recorded import child, profiler_of

MOST: Final = 0.8  # of torch.profiler's
LAUNCHES: Final = 500  # fewer than a device queues, so none of them waits
ROUNDS: Final = 60


def both() -> tuple[float, float]:
    """Extra nanoseconds per launch under ours, and under torch.profiler."""
    ours, theirs = (float(child("launch_cost", side)) for side in ("ours", "torch"))
    return ours, theirs


def undisturbed(samples: Sequence[float]) -> float:
    """The lowest decile."""
    return sorted(samples)[len(samples) // 10]


def added_ns(launch: Callable[[], object], synchronize: Callable[[], object], side: str) -> float:
    make = profiler_of(side)

    def round_ns() -> float:
        synchronize()
        start = time.thread_time_ns()
        for _ in range(LAUNCHES):
            launch()
        return (time.thread_time_ns() - start) / LAUNCHES

    round_ns()
    plain = undisturbed([round_ns() for _ in range(ROUNDS)])  # before CUPTI is loaded
    with make():
        round_ns()
    recorded = []
    for _ in range(ROUNDS):
        with make():
            launch()
            recorded.append(round_ns())
    return undisturbed(recorded) - plain


def main(side: str) -> None:
    import torch

    one = torch.ones(1, device="cuda")
    gc.freeze()
    gc.disable()
    print(json.dumps(added_ns(lambda: one.add_(1), torch.cuda.synchronize, side)))


if __name__ == "__main__":
    main(*sys.argv[1:])
