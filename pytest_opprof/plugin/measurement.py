"""Turn a test's call phase into the values of documents, with what could not be captured."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pytest_opprof.capture import environment
from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.cuda import CUDA
from pytest_opprof.capture.instructions import installed_libraries
from pytest_opprof.capture.recording import Recording
from pytest_opprof.capture.replay import Replay
from pytest_opprof.capture.torch_ops import imported_torch
from pytest_opprof.errors import MeasurementError
from pytest_opprof.events.user_frames import place_of
from pytest_opprof.metrics import WALL_TIME, Source
from pytest_opprof.metrics.fingerprint import GUEST, LIBRARIES
from pytest_opprof.plugin.counting import MACHINE, CountedCalls, Kind
from pytest_opprof.plugin.stepping import Stepping
from pytest_opprof.results.agreement import repeated, settled
from pytest_opprof.results.build import most_of, with_calls, with_measurement
from pytest_opprof.results.recorded import OF_TORCH, capture_of, cycle_of, sources_of
from pytest_opprof.results.run import Measurement, MeasurementStatus, TestResult, Timing
from pytest_opprof.results.samples import Samples
from pytest_opprof.units import MOST_IN_JSON

_LONGEST: Final = 4_096  # a reason in a document


def measured(test: TestResult, stepping: Stepping) -> TestResult:
    """`test` with its recording; values that other looks saw differ become ranges."""
    looks = [_once(test, stepping, stepping.recordings)]
    if stepping.one_step:
        looks.append(_once(test, stepping, stepping.one_step))
    last = looks[0]
    if stepping.again is not None:
        last = _once(test, stepping.again, stepping.again.recordings)
        looks.append(last)
    found, *others = (settled(look, last) for look in looks)
    found = functools.reduce(functools.partial(repeated, fresh_process=False), others, found)
    return checked(with_instructions(found, stepping.counted))


def with_instructions(test: TestResult, counted: Iterable[CountedCalls]) -> TestResult:
    """`test` with the counts of further calls, or why there are none."""
    return functools.reduce(_with_counts, counted, test)


def _with_counts(test: TestResult, calls: CountedCalls) -> TestResult:
    kind = calls.kind
    if calls.reason:
        test = replace(test, unheard={**test.unheard, kind.source: calls.reason[:_LONGEST]})
    counts = calls.counts
    if not (counts and test.steps and test.is_usable):
        return test
    values = list(zip(*(one.totals for one in counts), strict=True))
    measured_of = dict(zip(kind.metrics, values, strict=True))
    functions = zip(kind.metrics, counts[-1].rows, strict=True)
    if noted := counts[-1].calls:
        places = ((call, place_of(call.file, call.line, call.caller)) for call in noted)
        test = with_calls(test, ((call.function, place, call.calls) for call, place in places if place))
    return replace(
        test,
        sources=(*test.sources, kind.source.value),
        settings={**test.settings, **_settings(kind)},
        totals=dict(test.totals)
        | {metric.name: Samples.ranging(found, steps=test.steps) for metric, found in measured_of.items()},
        functions={
            **test.functions,
            **{metric.name: most_of(counts) for metric, counts in functions if counts},
        },
    )


def _settings(kind: Kind) -> dict[str, str]:
    """What else than code its counts depend on."""
    found = {LIBRARIES: installed_libraries()}
    replay = Replay.here() if kind is MACHINE else None
    return found | {GUEST: replay.guest} if replay else found


def unmeasured(test: TestResult, status: MeasurementStatus, reason: str) -> TestResult:
    """`test` without numbers, and why."""
    return replace(test, measurement=Measurement(status=status, reason=reason))


def _once(test: TestResult, stepping: Stepping, recordings: Sequence[Recording]) -> TestResult:
    sources = sources_of(recordings, asked_for=stepping.sources)
    test = replace(
        test,
        measurement=_measurement(stepping),
        schedule=stepping.request.numbers,
        activities=stepping.request.activities,
        sources=sources,
        unheard={name: why for name, why in _unheard(stepping) if name not in sources},
        settings=environment.settings(),
        compile_cache=tuple(filter(None, [stepping.compile_cache])),
        capture=capture_of(recordings),
    )
    cycles = [cycle_of(recording) for recording in recordings]
    if not cycles or test.is_left_alone:
        return test
    durations_ns = stepping.timed.durations_ns
    times = {WALL_TIME.name: Samples.of(durations_ns)} if durations_ns else {}
    timing = Timing(
        steps=len(durations_ns),
        planned=stepping.timed.planned,
        disturbed=stepping.timed.disturbed,
        probe_ns=stepping.timed.probe_ns,
        reason=stepping.timed.reason,
    )
    test = replace(test, timing=timing)
    return with_measurement(test, cycles, extra_totals=times)


def checked(test: TestResult) -> TestResult:
    """The same test. Raises `MeasurementError` if a total is too large for a file of this and other tests."""
    for name, samples in test.totals.items():
        if max(samples.high, 0 if samples.is_exact else samples.total) > MOST_IN_JSON:
            raise MeasurementError(
                f"{name} is above {MOST_IN_JSON}, the most in a JSON file. Measure less in a step"
            )
    return test


def _measurement(stepping: Stepping) -> Measurement:
    if stepping.problem is not None:
        is_left_alone = not (stepping.is_repeatable or stepping.request.is_named)
        status = MeasurementStatus.NOT_RUN if is_left_alone else MeasurementStatus.ERROR
        return Measurement(status=status, reason=stepping.problem)
    if stepping.doubt is not None:
        return Measurement(status=MeasurementStatus.INCONCLUSIVE, reason=stepping.doubt)
    no_ops = stepping.unheard.get("ops") or Collector.instance().problems.get("ops")
    if no_ops and imported_torch() is not None and stepping.sources & OF_TORCH:
        return Measurement(
            status=MeasurementStatus.INCONCLUSIVE, reason=f"torch's ops were not recorded: {no_ops}"
        )
    return Measurement()


def _unheard(stepping: Stepping) -> Iterator[tuple[str, str]]:
    """Requested sources that cannot be captured, or were lost before the end, and why."""
    collector = Collector.instance()
    for source, reason in {**stepping.unheard, **collector.problems, **collector.lapses}.items():
        if source in stepping.sources or source == Source.MEMORY_CUDA:
            yield source, reason[:_LONGEST]


def problem_sentences(problems: Mapping[str, str]) -> list[str]:
    """The collector's problems, a sentence each."""
    return [problem_sentence(source, reason) for source, reason in problems.items()]


def problem_sentence(source: str, reason: str) -> str:
    """Why a source is not captured, and what that means for gates of its own."""
    return f"no CUDA capture ({reason}): CUDA gates are inconclusive" if source == CUDA else reason
