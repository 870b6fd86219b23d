"""A run document made from a trace, so that a trace from somewhere else can be a baseline."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pytest_opprof.capture.gpus import joined
from pytest_opprof.errors import DocumentError
from pytest_opprof.kinds import PYTHON_CALLS, EventKind
from pytest_opprof.metrics import Source
from pytest_opprof.release import version
from pytest_opprof.results.build import with_measurement
from pytest_opprof.results.names import bounded
from pytest_opprof.results.recorded import capture_of
from pytest_opprof.results.rows import Cycle, as_one_step
from pytest_opprof.results.run import Environment, Run, TestResult
from pytest_opprof.results.shards import RANK, WORLD_SIZE
from pytest_opprof.units import NS_IN_S

if TYPE_CHECKING:
    from pytest_opprof.traces.kineto import TraceFile

# The default name, so that two traces are compared as one test.
TEST_NAME = "trace"
_LONGEST_FIELD = 200


def run_from_trace(trace: TraceFile, *, test_name: str = TEST_NAME) -> Run:
    """One run with one test: the trace's steps, or the whole trace as one step if it has none.

    Raises a `DocumentError` if it has no op, because a comparison with such a run always passes.
    """
    recording = trace.recording
    if not len(recording):
        raise DocumentError(f"{trace.path}: no op in this trace can be read, so there is nothing to compare")
    steps, unread = len(recording.steps), recording.unread_events
    groups, device = recording.groups_with_device_work()
    if not steps:
        groups = [replace(group, steps=as_one_step(group.sums)) for group in groups]
        device = replace(device, steps=as_one_step(device.outside)) if device else None
    kinds = set(bytes(recording.kind))
    test = TestResult(
        node_id=test_name,
        activities=("cpu", "cuda") if any(EventKind(kind).is_on_device for kind in kinds) else ("cpu",),
        sources=(
            Source.RANGES,
            Source.OPS,
            *((Source.PYTHON,) if kinds & PYTHON_CALLS else ()),
            *((Source.CUDA,) if device else ()),
        ),
        capture=capture_of([recording]),
    )
    cycle = Cycle(steps=max(steps, 1), groups=groups, tree=recording.call_tree(), device=device)
    return Run(
        run_id=secrets.token_hex(8),
        created=_created(recording.trace_start_ns),
        opprof_version=version(),
        environment=_environment(trace),
        notes=(
            f"made from the trace {trace.path.name}",
            *([f"{unread} events of the trace are not understood"] if unread else []),
        ),
        tests=(with_measurement(test, [cycle]),),
    )


def _created(start_ns: int) -> datetime:
    """When it was recorded; now, if the trace's time is not a date."""
    try:
        return datetime.fromtimestamp(start_ns // NS_IN_S, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.now(UTC).replace(microsecond=0)


def _environment(trace: TraceFile) -> Environment:
    """The trace's devices; it does not have the rest of the machine."""
    given = trace.metadata.get("deviceProperties")
    devices = [device for device in (given if isinstance(given, list) else []) if isinstance(device, dict)]
    names = joined(device["name"] for device in devices if isinstance(device.get("name"), str))
    architectures = joined(
        f"{device['computeMajor']}.{device['computeMinor']}"
        for device in devices
        if all(isinstance(device.get(key), int) for key in ("computeMajor", "computeMinor"))
    )
    fields = {
        "gpu_arch": architectures,
        "gpu_model": names,
        "cuda": _cuda_version(trace.metadata.get("cuda_runtime_version")),
    }
    return Environment(
        fingerprint={name: bounded(value, length=_LONGEST_FIELD) for name, value in fields.items() if value},
        details={
            **({"devices": bounded(names, length=_LONGEST_FIELD)} if names else {}),
            **({RANK: str(trace.rank)} if trace.rank is not None else {}),
            **({WORLD_SIZE: str(trace.world_size)} if trace.world_size is not None else {}),
        },
    )


def _cuda_version(number: object) -> str:
    """``12.6`` for Kineto's 12060; "" without one."""
    known = isinstance(number, int) and not isinstance(number, bool) and number > 0
    return f"{number // 1000}.{number % 1000 // 10}" if known and isinstance(number, int) else ""
