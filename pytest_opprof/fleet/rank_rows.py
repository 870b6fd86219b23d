"""One rank's trace or run as rows: its ops, its collectives, its steps; a run's are those of its tests."""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pytest_opprof.analysis.collectives import collectives
from pytest_opprof.analysis.device_time import DeviceTime, device_times
from pytest_opprof.errors import DocumentError
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import SELF_CPU_TIME_TOTAL
from pytest_opprof.metrics.device import DEVICE_MEMORY_PEAK, SELF_DEVICE_TIME_TOTAL
from pytest_opprof.results.names import STEP_NAME
from pytest_opprof.results.run import Outcome
from pytest_opprof.results.shards import RANK, WORLD_SIZE, is_number
from pytest_opprof.units import NS_IN_S

if TYPE_CHECKING:
    from pytest_opprof.fleet.manifest import RankFile
    from pytest_opprof.results.run import Run, TestResult
    from pytest_opprof.results.samples import Samples
    from pytest_opprof.traces.imported_recording import ImportedRecording
    from pytest_opprof.traces.kineto import TraceFile

TIMES: Final = tuple(one.name for one in fields(DeviceTime) if one.name != "span_ns")

_TYPES: Final = (
    dict.fromkeys(("name", "test", "group_name"), "string")
    | dict.fromkeys(("on_device", "is_annotation", "is_joint"), "bool")
    | dict.fromkeys(("rank", "file", "group_first", "group_size"), "int32")
)
_NAMES: Final = {
    "ops": "name test on_device is_annotation rank step file count self_ns",
    "collectives": "rank step file name group_name group_first group_size instance is_joint "
    "start_ns duration_ns nbytes",
    "steps": f"rank step file test start_ns duration_ns {' '.join(TIMES)} peak_bytes",
}
# Arrow's type of each table's columns. A trace has no `test`. Times count from the start of the rank's own
# trace: DuckDB's median is a double, which cannot hold nanoseconds since the epoch.
COLUMNS: Final = {
    table: {name: _TYPES.get(name, "int64") for name in names.split()} for table, names in _NAMES.items()
}
TABLES: Final = tuple(COLUMNS)


# The rows of one rank, by table: tuples in the order of `COLUMNS`.
RankRows: TypeAlias = dict[str, list[tuple[Any, ...]]]


def rank_rows(trace: TraceFile, *, rank: int, file: int) -> RankRows:
    """A trace's rows for each table."""
    recording = trace.recording
    return {
        "ops": summed(_ops(recording, rank, file)),
        "collectives": _collectives(recording, rank, file),
        "steps": _steps(recording, rank, file),
    }


def _numbers(recording: ImportedRecording) -> list[int]:
    """The program's step numbers; a single 0 if it counted none."""
    return [step.number for step in recording.steps] or [0]


def summed(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Sum the calls and times of each op in each step, and sort the rows as in the table ``ops``."""
    sums: defaultdict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0])
    for *key, count, self_ns in rows:
        if count:
            both = sums[tuple(key)]
            both[0] += count
            both[1] += self_ns
    return sorted((*key, *both) for key, both in sums.items())


def _ops(recording: ImportedRecording, rank: int, file: int) -> Iterator[tuple[Any, ...]]:
    numbers, has_steps = _numbers(recording), bool(recording.steps)
    for group in recording.groups():
        is_device = bool(group.device_type)
        of_self = "self_device_ns" if is_device else "self_ns"
        counts = group.steps["count"] if has_steps else (group.count,)
        times = group.steps[of_self] if has_steps else (group.sums[of_self],)
        for number, *both in zip(numbers, counts, times, strict=True):
            yield group.name, "", is_device, group.is_user_annotation, rank, number, file, *both


def _collectives(recording: ImportedRecording, rank: int, file: int) -> list[tuple[Any, ...]]:
    numbers = _numbers(recording)
    seen: Counter[tuple[Any, ...]] = Counter()
    rows = []
    for one in collectives(recording):
        step = numbers[max(one.step, 0)] if one.step >= 0 or not recording.steps else -1
        key = (step, one.name, one.group, one.ranks[:1], one.group_size)
        first = one.ranks[0] if one.ranks else -1
        # A collective without a number in its group is matched with other ranks' by its order in the step.
        instance = one.sequence if one.sequence >= 0 else seen[key]
        seen[key] += 1
        rows.append(
            (
                *(rank, step, file, one.name, one.group, first, one.group_size, instance, one.is_joint),
                *(one.start_ns, one.duration_ns, one.nbytes),
            )
        )
    return sorted(rows, key=itemgetter(0, 9))


def _steps(recording: ImportedRecording, rank: int, file: int) -> list[tuple[Any, ...]]:
    steps = [
        (step.start_ns - recording.trace_start_ns, step.end_ns - step.start_ns) for step in recording.steps
    ]
    of_steps, whole = recording.memory_use(on_device=True)
    peaks = of_steps if steps else [whole]
    steps = steps or [(0, recording.trace_end_ns)]
    devices = [times for _, times in device_times(recording)] or [[DeviceTime()] * len(steps)]
    sums = [
        [sum(getattr(one, name) for one in each) for name in TIMES] for each in zip(*devices, strict=True)
    ]
    return [
        (rank, number, file, "", *step, *of_step, peak.peak)
        for number, step, of_step, peak in zip(_numbers(recording), steps, sums, peaks, strict=True)
    ]


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
        ops += _ops_of_test(test, rank, first, file)
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


def _ops_of_test(test: TestResult, rank: int, first: int, file: int) -> Iterator[tuple[Any, ...]]:
    """Each op in each step, without those of background threads."""
    for op in test.ops:
        if not op.background and op.name != STEP_NAME:
            of_self = SELF_DEVICE_TIME_TOTAL if op.kind.is_on_device else SELF_CPU_TIME_TOTAL
            key = op.name, test.node_id, op.kind.is_on_device, op.kind is OpKind.RANGE, rank
            samples = (_values(one, steps=test.steps) for one in (op.count, op.samples(of_self.name)))
            for step, both in enumerate(zip(*samples, strict=True), first):
                yield *key, step, file, *both


def _values(samples: Samples | None, *, steps: int) -> tuple[int, ...]:
    """A value for each step; if the run keeps only their sum and range, made-up values with these.

    The sum gives way where no values have both, as of measurements that disagree.
    """
    if samples is None:
        return (0,) * steps
    if samples.values or steps == 1:
        return samples.values or (samples.total,)
    low, high, left = samples.low, samples.high, steps - 2
    rest = min(max(samples.total - low - high, low * left), high * left)
    each, more = divmod(rest, max(left, 1))
    return (low, high, *itertools.repeat(each + 1, more), *itertools.repeat(each, left - more))
