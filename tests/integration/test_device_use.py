"""Device work per op and step: the native sums against a plain reading of the same events."""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_opprof import load_trace
from pytest_opprof.analysis.evaluation import BasicEvaluation
from pytest_opprof.capture.op_groups import DIRECTIONS, MEASURES, DeviceUse, OpGroup
from pytest_opprof.kinds import EventKind
from pytest_opprof.results.samples import Samples
from pytest_opprof.results.trace_run import run_from_trace
from pytest_opprof.traces.imported_recording import ImportedRecording

CALLS = (
    "cudaLaunchKernel",
    "cudaGraphLaunch",
    "cudaStreamSynchronize",
    "cudaMemcpyAsync",
    "cudaMemcpy",
    "cudaMalloc",
)
WORK = frozenset({EventKind.KERNEL, EventKind.MEMCPY, EventKind.MEMSET})
OPS = frozenset({EventKind.TORCH, EventKind.RANGE})
Sums = dict[str, dict[int, int]]  # by measure and step, -1 for none

times = st.integers(0, 60)
lengths = st.integers(0, 30)
hosts = st.tuples(st.sampled_from(["forward", "aten::add", "aten::mul"]), st.integers(1, 2), times, lengths)
calls = st.tuples(st.sampled_from(CALLS), st.integers(1, 2), times, st.integers(0, 3))
works = st.tuples(
    st.sampled_from(
        ["gemm", "relu", "Memset (Device)", *(f"Memcpy {name}" for name in ("HtoD", "DtoH", "DtoD"))]
    ),
    st.integers(0, 1),  # device
    st.integers(7, 8),  # stream
    st.integers(0, 90),
    lengths,
    st.integers(0, 12),  # correlation; past the calls: not recorded
)
programs = st.tuples(
    st.lists(hosts, max_size=8), st.lists(calls, max_size=8), st.lists(works, max_size=12), st.integers(0, 2)
)


def events_of(program: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    ops, runtime, work, steps = program
    for step in range(steps):
        name = f"ProfilerStep#{step}"
        yield event("user_annotation", name, pid=1, tid=1, ts=25 * step, dur=24)
    for name, tid, start, length in ops:
        category = "cpu_op" if "::" in name else "user_annotation"
        yield event(category, name, pid=1, tid=tid, ts=start, dur=length)
    for number, (name, tid, start, length) in enumerate(runtime):
        yield event("cuda_runtime", name, pid=1, tid=tid, ts=start, dur=length, correlation=number)
    for name, device, stream, start, length, number in work:
        category = "gpu_memcpy" if "cpy" in name else "gpu_memset" if "set" in name else "kernel"
        yield event(
            category, name, pid=device, tid=stream, ts=start, dur=length, correlation=number, bytes=start + 1
        )


def event(cat: str, name: str, *, pid: int, tid: int, ts: int, dur: int, **args: int) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


class PlainReading:
    """The sums of one row, or of all, computed by a full scan each time."""

    def __init__(self, recording: ImportedRecording) -> None:
        self.recording = recording
        self.kinds = [EventKind(kind) for kind in recording.kind]
        self.work = [row for row, kind in enumerate(self.kinds) if kind in WORK]
        lanes = {lane.index: lane for lane in recording.threads}
        self.device = {row: lanes[recording.thread[row]].device_index for row in self.work}

    def step_of(self, row: int) -> int:
        launcher = self.recording.launcher[row]
        return self.recording.step[launcher if launcher >= 0 else row]

    def around(self, row: int) -> list[int]:
        """An event and its ancestors."""
        chain = [row]
        while (row := self.recording.parent[row]) >= 0:
            chain.append(row)
        return chain

    def inside(self, rows: set[int] | None) -> tuple[list[int], list[int]]:
        """The work and the calls inside some events; of all events by default."""
        calls = [row for row, kind in enumerate(self.kinds) if kind is EventKind.RUNTIME]
        if rows is None:
            return self.work, calls
        launched = [row for row in self.work if self.recording.launcher[row] >= 0]
        mine = [row for row in launched if rows & self.charged(self.recording.launcher[row])]
        mine += [row for row in self.work if row in rows]
        return mine, [row for row in calls if rows & self.charged(row)]

    def charged(self, call: int) -> set[int]:
        """The op around a call, with its ancestors; without an op, the call itself."""
        chain = self.around(call)
        ops = [at for at, row in enumerate(chain) if self.kinds[row] in OPS]
        return set(chain[ops[0] :] if ops else chain)

    def sums(self, rows: set[int] | None) -> Sums:
        found: Sums = defaultdict(lambda: defaultdict(int))
        work, calls = self.inside(rows)
        for row in work:
            self.count(row, found)
        waited = {
            self.recording.launcher[row]
            for row in work
            if self.kinds[row] is EventKind.MEMCPY and "DtoD" not in self.recording.name(row)
        }
        for row in calls:
            name, step = self.recording.name(row), self.recording.step[row]
            found["launches"][step] += "Launch" in name
            found["syncs"][step] += "Synchronize" in name or (name == "cudaMemcpy" and row in waited)
        self.add_busy(work, found)
        return found

    def count(self, row: int, found: Sums) -> None:
        step, name = self.step_of(row), self.recording.name(row)
        if self.kinds[row] is not EventKind.MEMCPY:
            found["kernels" if self.kinds[row] is EventKind.KERNEL else "memsets"][step] += 1
            return
        nbytes = self.recording.args(row)["bytes"]
        direction = name.removeprefix("Memcpy ").lower()
        for measure, amount in (
            ("copies", 1),
            (f"copies_{direction}", 1),
            ("copied_bytes", nbytes),
            (f"copied_bytes_{direction}", nbytes),
        ):
            found[measure][step] += amount

    def covered(self, rows: list[int], device: int) -> set[int]:
        """The nanoseconds that a device works, in thousands."""
        spans = (
            range(
                self.recording.start_ns[row] // 1000,
                (self.recording.start_ns[row] + self.recording.duration_ns[row]) // 1000,
            )
            for row in rows
            if self.device[row] == device
        )
        return {at for span in spans for at in span}

    def add_busy(self, work: list[int], found: Sums) -> None:
        for step in {self.step_of(row) for row in work}:
            here = [row for row in work if self.step_of(row) == step]
            found["device_busy_time"][step] = sum(
                1000 * len(self.covered(here, device)) for device in set(self.device.values())
            )

    def idle(self, spans: list[tuple[int, int, int]]) -> Sums:
        """For spans with their steps: their duration, and the part without work."""
        found: Sums = defaultdict(lambda: defaultdict(int))
        for device in set(self.device.values()):
            busy = self.covered(self.work, device)
            for step, start, end in spans:
                found["span_ns"][step] += end - start
                found["idle_ns"][step] += (
                    end - start - 1000 * len(busy & set(range(start // 1000, end // 1000)))
                )
        return found

    def depth(self, moments: list[tuple[int, int]]) -> Sums:
        recording = self.recording
        found: Sums = defaultdict(lambda: defaultdict(int))
        waiting = [
            (recording.start_ns[launcher], recording.start_ns[row])
            for row in self.work
            if self.kinds[row] is EventKind.KERNEL and (launcher := recording.launcher[row]) >= 0
        ]
        for step, at in moments if waiting else []:
            found["depths"][step] += 1
            found["depth"][step] += sum(launched <= at < max(begun, launched) for launched, begun in waiting)
        return found


def by_step(sums: Sums, steps: int) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
    inside = {name: tuple(values[step] for step in range(steps)) for name, values in sums.items()}
    return (
        {name: values for name, values in inside.items() if any(values)},
        {name: values[-1] for name, values in sums.items() if values[-1]},
    )


def check_use(recording: ImportedRecording, groups: list[OpGroup], use: DeviceUse) -> None:
    plain, steps = PlainReading(recording), len(recording.steps)
    ends = {step: s.end_ns - recording.trace_start_ns for step, s in enumerate(recording.steps)}
    spans = [(at, s.start_ns - recording.trace_start_ns, ends[at]) for at, s in enumerate(recording.steps)]
    launches = [
        (recording.step[row], recording.start_ns[row])
        for row in range(len(recording))
        if "Launch" in recording.name(row) and row in set(recording.launcher)
    ]
    whole = plain.sums(None) | plain.idle(spans or [(-1, 0, recording.trace_end_ns)]) | plain.depth(launches)
    assert (use.steps, use.outside) == by_step(whole, steps)
    for group in groups:
        rows = {
            row
            for row in range(len(recording))
            if recording.name(row) == group.name
            or (group.name == "ProfilerStep*" and "#" in recording.name(row))
        }
        expected = plain.sums(rows)
        of_steps = {name: values for name, values in group.steps.items() if name in MEASURES}
        outside = {name: value for name, value in group.sums.items() if name in MEASURES}
        if not of_steps and not outside:
            assert by_step(expected, steps) == ({}, {})
            continue
        ops = [row for row in sorted(rows) if plain.kinds[row] in OPS]
        starts = [(recording.step[row], recording.start_ns[row]) for row in ops]
        within = [
            (step, start, start + recording.duration_ns[row])
            for row, (step, start) in zip(ops, starts, strict=True)
        ]
        expected |= plain.idle(within) | plain.depth(starts)
        assert (of_steps, outside) == by_step(expected, steps)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("device_use") / "trace.json"


@given(program=programs)
def test_sums_match_a_plain_reading(file: Path, program: tuple[Any, ...]) -> None:
    file.write_text(json.dumps(list(events_of(program))), encoding="utf-8")
    recording = load_trace(file).recording
    groups, use = recording.groups_with_device_work()
    calls, work = program[1], program[2]
    if use is None:
        assert not calls
        assert not work
        return
    check_use(recording, groups, use)
    assert use.untimed == use.unsized == use.undirected == 0
    launching = {number for number, call in enumerate(calls) if "Launch" in call[0]}
    assert use.unmatched_launches == len(launching - {one[5] for one in work})


def test_a_trace_without_steps_is_one_step(file: Path) -> None:
    program = [("aten::add", 1, 0, 9)], [("cudaLaunchKernel", 1, 1, 1)], [("gemm", 0, 7, 3, 4, 0)], 0
    file.write_text(json.dumps(list(events_of(program))), encoding="utf-8")
    (test,) = run_from_trace(load_trace(file)).tests
    kernels = {row.name: row.metrics.get("kernels") for row in test.ops}
    assert test.totals["kernels.count"] == kernels["aten::add"] == Samples.of([1])


def test_measures_are_named_in_their_order() -> None:
    assert MEASURES.index("copies_htod") + len(DIRECTIONS) == MEASURES.index("copied_bytes")
    assert MEASURES.index("device_busy_time") == len(MEASURES) - 5


@pytest.mark.parametrize(
    "name",
    [
        "alexnet_inference_cuda.json.gz",
        "event_sync_multi_stream_cuda.json.gz",
        "minitoy_training_rocm.json.gz",
        "nccl_training_rank0_cuda.json.gz",
        "sampled_training_cuda.json.gz",
        "triton_kernel_cuda.json.gz",
    ],
)
def test_queue_depth_matches_basic_evaluation(traces: Path, name: str) -> None:
    trace = load_trace(traces / name)
    use = trace.recording.device_use()
    assert use is not None
    evaluation = BasicEvaluation(trace)
    points = zip(evaluation.cuda_events, evaluation.queue_depth_list, strict=True)
    launches = [point.queue_depth for event, point in points if "Launch" in event.name()]
    measured = {
        measure: sum(use.steps.get(measure, ())) + use.outside.get(measure, 0)
        for measure in ("depth", "depths")
    }
    assert measured == {"depth": sum(launches), "depths": len(launches)}
