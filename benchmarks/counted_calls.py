"""The cost of counting a call's Python instructions, for plain Python and for a training step of torch."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Final

from benchmarks.child import measured
from benchmarks.table import Row
from benchmarks.workloads import cpu_time_ns, quieten, torch_workloads

_MOST: Final = {"plain": 8.0, "torch": 1.3}
_STEP: Final = "encoder, forward and backward"
_REPEATS: Final = 30
_ROUNDS: Final = {"plain": 50, "torch": 2}


def rows(*, quick: bool) -> list[Row]:
    """How many times as long a counted call takes; the fastest of some processes counts."""
    table = []
    for kind, most in _MOST.items():
        plain, counted = map(
            min, zip(*(measured("counted_calls", kind) for _ in range(1 if quick else 3)), strict=True)
        )
        what = _STEP if kind == "torch" else "plain Python"
        table.append(
            Row(
                what=f"Python instructions counted: {what}",
                ours=f"{counted / 1e6:.2f} ms",
                peer=f"not counted {plain / 1e6:.2f} ms",
                figure=counted / plain,
                at_most=most,
            )
        )
    return table


def _work(kind: str) -> Callable[[int], None]:
    if kind == "torch":
        return next(one.loop for one in torch_workloads() if one.name == _STEP)
    from benchmarks.scripts.calls import evaluated  # noqa: PLC0415  # one side in a process

    return evaluated


def _costs(kind: str) -> list[float]:
    """Nanoseconds of some rounds without and with counting, measured directly after each other."""
    from pytest_opprof.capture.instructions import InstructionCounter  # noqa: PLC0415  # as above

    work, rounds = _work(kind), _ROUNDS[kind]
    counter = InstructionCounter()
    quieten()
    best, bare = float("inf"), float("inf")
    for _ in range(_REPEATS):
        bare = min(bare, cpu_time_ns(work, rounds))
        counter.start()
        best = min(best, cpu_time_ns(work, rounds))
        counter.stop()
    return [bare, best]


if __name__ == "__main__":
    print(json.dumps(_costs(sys.argv[1])))
