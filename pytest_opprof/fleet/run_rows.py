"""One rank's run as rows: the steps of its tests, one test after the other, as steps of one program."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_opprof.errors import DocumentError
from pytest_opprof.fleet.rank_rows import TIMES, RankRows, summed
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import SELF_CPU_TIME_TOTAL
from pytest_opprof.metrics.device import DEVICE_MEMORY_PEAK, SELF_DEVICE_TIME_TOTAL
from pytest_opprof.results.names import STEP_NAME
from pytest_opprof.results.run import Outcome
from pytest_opprof.results.shards import RANK, WORLD_SIZE, is_number
from pytest_opprof.units import NS_IN_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_opprof.fleet.manifest import RankFile
    from pytest_opprof.results.run import Run, TestResult
    from pytest_opprof.results.samples import Samples


def with_run(one: RankFile, run: Run) -> RankFile:
    """Fill in a file's rank, job and events from its run."""
    rank, size = (run.environment.details.get(key, "") for key in (RANK, WORLD_SIZE))
    return replace(
        one,
        rank=int(rank) if is_number(rank) else one.rank,
        world_size=int(size) if is_number(size) else 0,
        job_key=json.dumps(["run", run.commit.id if run.commit else None]),
        trace_start_ns=round(run.created.timestamp()) * NS_IN_S,
        events=sum(test.capture.events for test in run.tests),
    )


def run_rows(run: Run, *, rank: int, file: int) -> RankRows:
    """A run's rows for each table; DocumentError if none of its tests, or not each that ran, was measured."""
    tests = sorted(filter(_is_measured, run.tests), key=lambda test: test.node_id)
    if not tests:
        raise DocumentError("no test was measured")
    ops: list[tuple[Any, ...]] = []
    steps: list[tuple[Any, ...]] = []
    for test in tests:
        first = len(steps)
        ops += _ops(test, rank, first, file)
        whole = next((op.cpu_time_total_ns for op in test.ops if op.name == STEP_NAME), None)
        durations = _values(whole, steps=test.steps)
        peaks = _values(test.totals.get(DEVICE_MEMORY_PEAK.name), steps=test.steps)
        steps += [
            (rank, first + step, file, test.node_id, 0, duration, *itertools.repeat(0, len(TIMES)), peak)
            for step, (duration, peak) in enumerate(zip(durations, peaks, strict=True))
        ]
    return {"ops": summed(ops), "collectives": [], "steps": steps}


def _is_measured(test: TestResult) -> bool:
    if test.carried_from or test.outcome is Outcome.SKIPPED or test.is_left_alone:
        return False
    if not test.is_usable:
        why = test.measurement.reason or f"it {test.outcome}"
        raise DocumentError(f"{test.node_id} was not measured: {why}")
    return test.steps > 0


def _ops(test: TestResult, rank: int, first: int, file: int) -> Iterator[tuple[Any, ...]]:
    """Each op in each step, without those of background threads."""
    for op in test.ops:
        if not op.background and op.name != STEP_NAME:
            of_self = SELF_DEVICE_TIME_TOTAL if op.kind.is_on_device else SELF_CPU_TIME_TOTAL
            key = op.name, test.node_id, op.kind.is_on_device, op.kind is OpKind.RANGE, rank
            samples = (_values(one, steps=test.steps) for one in (op.count, op.samples(of_self.name)))
            for step, both in enumerate(zip(*samples, strict=True), first):
                yield *key, step, file, *both


def _values(samples: Samples | None, *, steps: int) -> tuple[int, ...]:
    """A value for each step; if the run keeps only their sum and range, made-up values with that range."""
    if samples is None:
        return (0,) * steps
    return samples.values or (samples.low, *itertools.repeat(samples.high, steps - 1))
