"""One rank's trace as rows: its ops, its collectives, its steps."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import fields
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pytest_opprof.analysis.collectives import collectives
from pytest_opprof.analysis.device_time import DeviceTime, device_times

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
