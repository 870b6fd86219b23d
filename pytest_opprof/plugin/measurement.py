"""From a test's call phase to the values that documents hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.recording import Recording
from pytest_opprof.capture.torch_ops import imported_torch
from pytest_opprof.plugin.stepping import Stepping
from pytest_opprof.results.build import Cycle, with_measurement
from pytest_opprof.results.run import CaptureStats, Measurement, MeasurementStatus, Outcome, TestResult


def measurement_of(
    stepping: Stepping | None,
    *,
    node_id: str,
    outcome: Outcome,
    limits: Mapping[str, int | str],
    gates: Mapping[str, str],
) -> TestResult:
    """What was measured of one test.

    Args:
        stepping: Its call phase; None where it did not get that far.
        node_id: As documents hold it.
        outcome: How the test itself ended.
        limits: Budgets by path, checked.
        gates: Rules by path, checked.
    """
    if stepping is None or outcome is not Outcome.PASSED:
        not_run = Measurement(status=MeasurementStatus.NOT_RUN, reason=f"the test was {outcome}")
        return TestResult(node_id=node_id, outcome=outcome, measurement=not_run, limits=limits, gates=gates)
    recordings = stepping.recordings
    test = TestResult(
        node_id=node_id,
        outcome=outcome,
        measurement=_measurement(stepping),
        schedule=stepping.request.numbers,
        activities=stepping.request.activities,
        sources=_sources(recordings),
        capture=_capture(recordings),
        limits=limits,
        gates=gates,
    )
    return with_measurement(
        test,
        [
            Cycle(steps=len(recording.steps), groups=recording.groups(), tree=recording.call_tree())
            for recording in recordings
        ],
    )


def _measurement(stepping: Stepping) -> Measurement:
    if stepping.problem is not None:
        return Measurement(status=MeasurementStatus.ERROR, reason=stepping.problem)
    if stepping.doubt is not None:
        return Measurement(status=MeasurementStatus.INCONCLUSIVE, reason=stepping.doubt)
    no_ops = Collector.instance().problems.get("ops")
    if no_ops and imported_torch() is not None:
        return Measurement(
            status=MeasurementStatus.INCONCLUSIVE, reason=f"torch's ops were not seen: {no_ops}"
        )
    return Measurement()


def _sources(recordings: Sequence[Recording]) -> tuple[str, ...]:
    """What all cycles listened to."""
    heard = [set(recording.sources) for recording in recordings]
    common = set.intersection(*heard) if heard else set()
    return tuple(source for source in (recordings[0].sources if recordings else ()) if source in common)


def _capture(recordings: Sequence[Recording]) -> CaptureStats:
    stats = [recording.stats for recording in recordings]
    return CaptureStats(
        events=sum(one.events for one in stats),
        dropped=sum(one.dropped for one in stats),
        truncated=any(one.truncated for one in stats),
        threads=max((one.threads for one in stats), default=0),
        unmatched_ends=sum(one.unmatched_ends for one in stats),
        names_overflowed=max((one.names_overflowed for one in stats), default=0),
        crash_recovery=all(one.crash_recovery for one in stats),
    )
