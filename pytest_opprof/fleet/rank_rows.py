"""One rank's trace as rows: its ops, its collectives, its steps."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import fields
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pytest_opprof.analysis.collectives import collectives
from pytest_opprof.analysis.device_time import DeviceTime, device_times

if TYPE_CHECKING:
    from pytest_opprof.traces.imported_recording import ImportedRecording
    from pytest_opprof.traces.kineto import TraceFile

TIMES: Final = tuple(one.name for one in fields(DeviceTime) if one.name != "span_ns")

# Arrow's types by the columns of each table; a trace has no `test`. Times count from the start of the rank's
# own trace: nanoseconds since the epoch do not fit into a double, and DuckDB's median is one.
COLUMNS: Final[dict[str, dict[str, str]]] = {
    "ops": {
        "name": "string",
        "test": "string",
        "on_device": "bool",
        "is_annotation": "bool",
        "rank": "int32",
        "step": "int64",
        "file": "int32",
        "count": "int64",
        "self_ns": "int64",
    },
    "collectives": {
        "rank": "int32",
        "step": "int64",
        "file": "int32",
        "name": "string",
        "group_name": "string",
        "group_first": "int32",
        "group_size": "int32",
        "instance": "int64",
        "is_joint": "bool",
        "start_ns": "int64",
        "duration_ns": "int64",
        "nbytes": "int64",
    },
    "steps": {
        "rank": "int32",
        "step": "int64",
        "file": "int32",
        "test": "string",
        "start_ns": "int64",
        "duration_ns": "int64",
        **dict.fromkeys(TIMES, "int64"),
        "peak_bytes": "int64",
    },
}
TABLES: Final = tuple(COLUMNS)


# The rows of one rank, by table: tuples in the order of `COLUMNS`.
RankRows: TypeAlias = dict[str, list[tuple[Any, ...]]]


def rank_rows(trace: TraceFile, *, rank: int, file: int) -> RankRows:
    """What a trace has for each table."""
    recording = trace.recording
    return {
        "ops": _ops(recording, rank, file),
        "collectives": _collectives(recording, rank, file),
        "steps": _steps(recording, rank, file),
    }


def _numbers(recording: ImportedRecording) -> list[int]:
    """The steps as the program counted them; one, where it counted none."""
    return [step.number for step in recording.steps] or [0]


def _ops(recording: ImportedRecording, rank: int, file: int) -> list[tuple[Any, ...]]:
    sums: defaultdict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0])
    numbers, has_steps = _numbers(recording), bool(recording.steps)
    for group in recording.groups():
        is_device = bool(group.device_type)
        of_self = "self_device_ns" if is_device else "self_ns"
        counts = group.steps["count"] if has_steps else (group.count,)
        times = group.steps[of_self] if has_steps else (group.sums[of_self],)
        for number, count, self_ns in zip(numbers, counts, times, strict=True):
            if count:
                both = sums[group.name, "", is_device, group.is_user_annotation, rank, number, file]
                both[0] += count
                both[1] += self_ns
    return sorted((*key, *both) for key, both in sums.items())


def _collectives(recording: ImportedRecording, rank: int, file: int) -> list[tuple[Any, ...]]:
    numbers = _numbers(recording)
    seen: Counter[tuple[Any, ...]] = Counter()
    rows = []
    for one in collectives(recording):
        step = numbers[one.step] if one.step >= 0 else -1
        key = (step, one.name, one.group, one.ranks[:1], one.group_size)
        first = one.ranks[0] if one.ranks else -1
        # Without its number in the group, a collective is matched with the others' by its order in the step.
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
    sums = [[0] * len(TIMES) for _ in steps]
    for _, times in device_times(recording):
        for of_step, time in zip(sums, times, strict=True):
            for at, name in enumerate(TIMES):
                of_step[at] += getattr(time, name)
    return [
        (rank, number, file, "", *step, *of_step, peak.peak)
        for number, step, of_step, peak in zip(_numbers(recording), steps, sums, peaks, strict=True)
    ]
