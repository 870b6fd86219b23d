"""A run document made from one recorded program: one test of one step."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from pytest_opprof.capture import environment
from pytest_opprof.capture.collector import Collector
from pytest_opprof.metrics import Source
from pytest_opprof.release import version
from pytest_opprof.results.build import with_measurement
from pytest_opprof.results.names import bounded_text, canonical_node_id
from pytest_opprof.results.recorded import OF_TORCH, capture_of, cycle_of, sources_of
from pytest_opprof.results.run import Environment, Measurement, MeasurementStatus, Outcome, Run, TestResult

if TYPE_CHECKING:
    from datetime import datetime

    from pytest_opprof.capture.recording import Recording
    from pytest_opprof.results.run import Commit


def run_of_program(
    recording: Recording, *, name: str, passed: bool, created: datetime, commit: Commit | None
) -> Run:
    """A window of this process as a run; if the program failed, its numbers are kept but not judged."""
    problems = Collector.instance().problems
    no_ops = problems.get("ops")
    test = TestResult(
        node_id=canonical_node_id(name),
        outcome=Outcome.PASSED if passed else Outcome.FAILED,
        measurement=Measurement(
            status=MeasurementStatus.INCONCLUSIVE,
            reason=bounded_text(f"torch's ops were not recorded: {no_ops}"),
        )
        if no_ops
        else Measurement(),
        activities=("cpu", "cuda") if Source.CUDA in recording.sources else ("cpu",),
        sources=sources_of([recording], asked_for=OF_TORCH & {Source.OPS}),
        unheard={source: bounded_text(why) for source, why in problems.items()},
        settings=environment.settings(),
        capture=capture_of([recording]),
    )
    return Run(
        run_id=secrets.token_hex(8),
        created=created,
        opprof_version=version(),
        commit=commit,
        environment=Environment(fingerprint=environment.fingerprint(), details=environment.details()),
        tests=(with_measurement(test, [cycle_of(recording)]),),
    )
