"""A run document made from a trace, so that a trace from somewhere else can be a baseline."""

from __future__ import annotations

import importlib.metadata
import secrets
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pytest_opprof.capture.op_kind import OpKind
from pytest_opprof.metrics import Source
from pytest_opprof.results.build import with_measurement
from pytest_opprof.results.cycle import Cycle
from pytest_opprof.results.names import bounded
from pytest_opprof.results.run import CaptureStats, Environment, Run, TestResult
from pytest_opprof.units import NS_IN_S, parts_per_million

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_opprof.capture.op_groups import OpGroup
    from pytest_opprof.traces.kineto import TraceFile

# What two traces have in common when nobody says it: they are compared as one test.
TEST_NAME = "trace"
_PYTHON = frozenset({OpKind.PYTHON_CALL, OpKind.C_CALL})
_LONGEST_DETAIL = 200


def run_from_trace(trace: TraceFile, *, test_name: str = TEST_NAME) -> Run:
    """One run with one test: the trace's steps, or the whole trace as one step where it has none.

    Args:
        trace: what was read.
        test_name: by which the test is paired with that of another run.
    """
    recording = trace.recording
    steps = len(recording.steps)
    groups: Sequence[OpGroup] = recording.groups()
    device = recording.device_use()
    if not steps:
        groups = [_as_one_step(group) for group in groups]
        device = device.as_one_step() if device else None
    kinds = set(bytes(recording.kind))
    test = TestResult(
        node_id=test_name,
        activities=("cpu", "cuda") if any(OpKind(kind).is_on_device for kind in kinds) else ("cpu",),
        sources=(
            Source.RANGES,
            Source.OPS,
            *((Source.PYTHON,) if kinds & _PYTHON else ()),
            *((Source.CUDA,) if device else ()),
        ),
        capture=CaptureStats(
            events=len(recording),
            threads=len(recording.threads),
            crash_recovery=False,
            sampled_ppm=parts_per_million(recording.stats.sampling),
        ),
    )
    cycle = Cycle(steps=max(steps, 1), groups=groups, tree=recording.call_tree(), device=device)
    return Run(
        run_id=secrets.token_hex(8),
        created=_created(recording.trace_start_ns),
        opprof_version=importlib.metadata.version("pytest-opprof"),
        environment=Environment(details=_details(trace)),
        notes=(f"made from the trace {trace.path.name}",),
        tests=(with_measurement(test, [cycle]),),
    )


def _as_one_step(group: OpGroup) -> OpGroup:
    return replace(
        group,
        step_counts=(group.count,),
        step_total_ns=(group.total_ns,),
        step_self_ns=(group.self_ns,),
        step_device_total_ns=(group.device_total_ns,),
        step_self_device_ns=(group.self_device_ns,),
    )


def _created(start_ns: int) -> datetime:
    """When it was recorded; now, where the trace's clock says what no calendar has."""
    try:
        return datetime.fromtimestamp(start_ns // NS_IN_S, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.now(UTC).replace(microsecond=0)


def _details(trace: TraceFile) -> dict[str, str]:
    devices = trace.metadata.get("deviceProperties")
    names = [
        bounded(device["name"], length=_LONGEST_DETAIL)
        for device in (devices if isinstance(devices, list) else [])
        if isinstance(device, dict) and isinstance(device.get("name"), str)
    ]
    return {"devices": bounded(", ".join(sorted(set(names))), length=_LONGEST_DETAIL)} if names else {}
