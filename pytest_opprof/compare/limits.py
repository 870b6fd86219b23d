"""Absolute budgets: the marker's ``limits``, and whether a measured test keeps them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from pytest_opprof.compare.comparison import LimitResult
from pytest_opprof.compare.functions import in_words
from pytest_opprof.compare.sums import part_metric, part_of
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.errors import UsageError
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import COUNT, PRESETS, Family, MetricPath, Source, Worse, matches, parse_path
from pytest_opprof.metrics.device import is_of_device
from pytest_opprof.metrics.host import RANGES_COUNT
from pytest_opprof.results.names import STEP_NAME
from pytest_opprof.results.run import OpRow, TestResult, value_of
from pytest_opprof.results.samples import Samples, range_text
from pytest_opprof.units import EVERY_PPM, Bound, Comparator, Unit, format_quantity, format_share, parse_limit
from pytest_opprof.wording import did_you_mean

_UPPER = {Comparator.AT_MOST, Comparator.BELOW}
_OF_TORCH = {Source.OPS, Source.OPS_ITT}
_MOST_CULPRITS = 3


def parse_limits(limits: object, *, where: str, known_ops: Collection[str] = ()) -> Mapping[str, int | str]:
    """Read the marker's ``limits``, by path: a dict of budgets, a preset's name, or a list of both."""
    if isinstance(limits, str | Mapping):
        limits = [limits]
    if not isinstance(limits, list | tuple):
        raise UsageError(f"{where}: limits are a dict, a preset's name, or a list of both, not {limits!r}")
    budgets: dict[str, int | str] = {}
    for entry in limits:
        if isinstance(entry, str):
            if entry not in PRESETS:
                hint = did_you_mean(entry, PRESETS, otherwise="there are")
                raise UsageError(f"unknown preset {entry!r} in {where} ({hint})")
            budgets |= PRESETS[entry]
        elif isinstance(entry, Mapping):
            budgets |= {str(path): limit for path, limit in entry.items()}
        else:
            raise UsageError(f"{where}: {entry!r} is neither a preset's name nor a dict of limits")
    for path, limit in budgets.items():
        _parse(path, limit, where=where, known_ops=known_ops)
    return budgets


def evaluate_limits(test: TestResult) -> tuple[LimitResult, ...]:
    """Whether a measured test keeps its budgets, one result each.

    An op that did not run has the value 0. The ops of a pattern share one budget. A budget of time is broken
    if even the fastest step exceeds it. The result is INCONCLUSIVE if the value is unknown, or if only the
    background's work decides it, because that may not be the test's. So is a limit of an older file that
    a marker may no longer have.
    """
    return tuple(_result(path, limit, test) for path, limit in test.limits.items())


def _result(path: str, limit: object, test: TestResult) -> LimitResult:
    try:
        return _evaluate(*_parse(path, limit, where=f"limits of {test.node_id}"), test)
    except UsageError as error:
        verdict = Verdict.INCONCLUSIVE
        return LimitResult(path=path, limit=str(limit), value=None, verdict=verdict, reason=str(error))


def _parse(
    path: str, limit: object, *, where: str, known_ops: Collection[str] = ()
) -> tuple[MetricPath, Bound]:
    parsed = parse_path(path, where=where, known_ops=known_ops)
    try:
        return parsed, parse_limit(limit, unit=parsed.metric.unit)
    except UsageError as error:
        raise UsageError(f"{where}: {path}: {error}") from error


def _evaluate(path: MetricPath, bound: Bound, test: TestResult) -> LimitResult:
    value, unit = value_of(test, path), path.metric.unit
    reason = _unknowable(path, test)
    if value is None or (reason and not _surely_broken(path, value, bound)):
        verdict, reason = Verdict.INCONCLUSIVE, reason or "it was not measured"
    elif path.metric.family is Family.TIME:
        best = value.high if path.metric.worse is Worse.LOWER else value.low
        verdict, reason = _pass_if(bound.holds(best)), ""
    elif bound.holds(value.low) and bound.holds(value.high):
        verdict, reason = Verdict.PASS, ""
    elif value.is_exact or not (bound.holds(value.low) or bound.holds(value.high)):
        verdict, reason = Verdict.REGRESSED, ""
    else:
        verdict = Verdict.INCONCLUSIVE
        reason = f"{value.low} to {value.high} in a step; the exact value is unknown"
    is_time = path.metric.family is Family.TIME
    if value is not None and verdict in {Verdict.PASS, Verdict.REGRESSED} and not is_time:
        # The mean of a step, rounded up. Who gives memory back uses up no budget.
        beside = max(0, math.ceil(sum(_amount(path, row) for row in test.ops if row.background)))
        with_it = _pass_if(bound.holds(value.low + beside) and bound.holds(value.high + beside))
        if beside and with_it is not verdict:
            own, more = range_text(value, unit=unit), format_quantity(beside, unit=unit)
            verdict, reason = Verdict.INCONCLUSIVE, f"{own} in each step, and {more} more in the background"
    if verdict is Verdict.REGRESSED and bound.comparator in _UPPER and not is_time:
        reason = culprits(path, test)
    return LimitResult(path=str(path), limit=str(bound), value=value, verdict=verdict, reason=reason)


def culprits(path: MetricPath, test: TestResult) -> str:
    """What used up a broken budget: ops with the lines that called them, or functions.

    ``aten::clone in keep, train.py:31 (4 KiB)``, the largest first; "" if unknown.
    """
    if counts := test.functions.get(path.metric.name) if path.op is None else None:
        return f"in {in_words(counts, of=path.metric)}"
    metric = path.metric.name if path.op else part_metric(path.metric)
    rows = [row for row in test.ops if not row.background and row.name != STEP_NAME]
    amounts = {row.key: _amount(path, row) for row in rows}
    rows = [row for row in rows if amounts[row.key] > 0]
    # An op includes the ops inside it: user code called the outermost.
    names = {row.name for row in rows}
    called = [row for row in rows if path.op or row.parent_op not in names] or rows
    ranked = sorted(called, key=lambda row: (-amounts[row.key], row.key))
    told = [
        f"{name} ({format_quantity(round(amounts[row.key]), unit=path.metric.unit)})"
        for row in ranked[:_MOST_CULPRITS]
        if (name := _named(row, metric, is_asked_for=row.name == path.op))
    ]
    more = [f"{len(ranked) - _MOST_CULPRITS} more"] if len(ranked) > _MOST_CULPRITS else []
    return "; ".join(told + more)


def _amount(path: MetricPath, row: OpRow) -> float:
    """A row's part of a value, as the mean of a step."""
    if path.op is None:
        return part_of(path.metric, row)
    return row.samples(path.metric.name).mean if matches(path.op, row.name) else 0.0


def _named(row: OpRow, metric: str, *, is_asked_for: bool) -> str:
    """The op and the line that called it most; an op that the budget itself names is not repeated."""
    places = row.parts.get(metric) or row.places
    place = max(places, key=lambda name: (places[name], name), default="")
    return " in ".join(filter(None, ("" if is_asked_for else row.name, place)))


def _pass_if(holds: bool) -> Verdict:  # noqa: FBT001 - it is the question
    return Verdict.PASS if holds else Verdict.REGRESSED


def _unknowable(path: MetricPath, test: TestResult) -> str:
    """Why the value is uncertain; empty if it is certain."""
    if unheard := _unheard(path, test):
        reason = test.unheard.get(unheard, "")
        return f"needs {unheard} capture, which did not run{f': {reason}' if reason else ''}"
    if test.capture.is_sampled and not _is_recorded_whole(path, test):
        share = format_share(test.capture.sampled_ppm / EVERY_PPM)
        return f"only {share} of the ops were recorded (sampling)"
    gap = test.capture.device_gap if _is_about_devices(path) else ""
    if gap or path.metric.family is Family.TIME:
        return gap
    if not test.capture.is_complete:
        return "events were dropped, so counts are too low"
    if path.op is not None and (test.ops_omitted or test.capture.names_overflowed):
        return "too many names: some ops have no row of their own"
    return ""


def _unheard(path: MetricPath, test: TestResult) -> Source | None:
    """The source that a value needs and the test lacked; None if it lacked none."""
    if _is_about_devices(path) and Source.CUDA not in test.sources:
        return Source.CUDA
    if not path.metric.answers(test.sources):
        return path.metric.source
    is_op = path.op is not None and "::" in path.op and not is_of_device(path.op)
    if is_op and _OF_TORCH.isdisjoint(test.sources):
        return Source.OPS
    return None


def _is_about_devices(path: MetricPath) -> bool:
    return path.metric.is_of_devices or (path.op is not None and is_of_device(path.op))


def _is_recorded_whole(path: MetricPath, test: TestResult) -> bool:
    """Whether sampling leaves a value exact: how often ranges and calls ran."""
    if path.op is None:
        return path.metric is RANGES_COUNT or path.metric.source is Source.CUDA
    return path.metric is COUNT and any(row.name == path.op and row.kind is not OpKind.OP for row in test.ops)


def _surely_broken(path: MetricPath, value: Samples, bound: Bound) -> bool:
    """Whether even a count that is too low exceeds an upper limit.

    If ops are missing, others have more self time, and releases of memory may be missing too.
    """
    copied = path.metric.source is Source.CUDA and path.metric.unit is Unit.BYTES
    only_grows = copied or path.metric.unit in {Unit.COUNT, Unit.FLOPS}
    return only_grows and bound.comparator in _UPPER and not bound.holds(value.low)
