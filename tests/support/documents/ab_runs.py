"""Runs of processes as `opprof ab` leaves them, generated from numbers."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from support.documents.strategies import simple_run, simple_test

from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import WALL_TIME
from pytest_opprof.results.run import OpRow, Run, TestResult, Timing
from pytest_opprof.results.samples import Samples

TEST = "tests/test_a.py::test_x"
MS = 1_000_000
# A speed probe's duration on an undisturbed machine.
PROBE_NS = 30_000


def timed_test(wall_ns: Sequence[int], *, ops: dict[str, tuple[int, int]], **others: Any) -> TestResult:
    """A test with these step times.

    Args:
        wall_ns: The steps without a profiler.
        ops: Calls per step, and self CPU time per step, of each op.
        others: As in `simple_test`.
    """
    bare = simple_test({name: count for name, (count, _) in ops.items()}, **{"processes": 1} | others)
    rows = tuple(
        row.with_metrics(self_cpu_time_total=Samples.constant(ops[row.name][1], steps=bare.steps))
        for row in bare.ops
    )
    return replace(
        bare,
        ops=rows,
        timing=Timing(steps=len(wall_ns), planned=len(wall_ns), probe_ns=PROBE_NS),
        totals={**bare.totals, WALL_TIME.name: Samples.of(wall_ns)},
    )


def one_test(wall_ns: int, *, step: int = 3, count: int = 2, node_id: str = TEST) -> TestResult:
    """A test of two ops that take all of its time; the second takes a tenth."""
    rest = wall_ns // 10
    ops = {"aten::addmm": (count, wall_ns - rest), "load": (1, rest)}
    return timed_test([wall_ns + 50, wall_ns, wall_ns + 99], ops=ops, node_id=node_id, steps=step)


def side(values: Sequence[int], make: Callable[[int], TestResult] = one_test) -> list[Run]:
    """One process per value, with a run of the test made from it."""
    return [simple_run(make(value), run_id=f"{at:x}") for at, value in enumerate(values, start=1)]


def near(middle_ns: int, *, count: int = 12, seed: int = 1, spread: float = 0.005) -> list[int]:
    """Times of N processes, normally distributed around a middle."""
    source = random.Random(seed)  # noqa: S311 - numbers to test with
    return [round(middle_ns * (1 + source.gauss(0, spread))) for _ in range(count)]


def many_tests(times: Sequence[Sequence[int]]) -> list[Run]:
    """Runs of several tests: a list of the processes' times for each."""
    return [
        simple_run(
            *(
                one_test(values[process], node_id=f"tests/test_a.py::test_{at}")
                for at, values in enumerate(times)
            ),
            run_id=f"{process + 1:x}",
        )
        for process in range(len(times[0]))
    ]


def cuda_row(name: str, count: int, *, steps: int) -> OpRow:
    """A kernel, which has no time on the host."""
    return OpRow(
        name=name,
        kind=OpKind.KERNEL,
        metrics={"count": Samples.constant(count, steps=steps)},
    )
