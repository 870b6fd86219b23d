"""A run as the history keeps it: each test's exact metrics once, and its varying values in each run.

Counts rarely change from run to run. So a test's exact metrics are a definition, named by its digest, to
which any number of runs refer. A run's own record then takes a few bytes for each test.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from pytest_opprof.metrics import COUNT, OP_METRICS, TOTALS, Family
from pytest_opprof.results.run import Commit, Run, TestResult
from pytest_opprof.results.samples import Samples
from pytest_opprof.units import Unit

DIGEST_LENGTH = 16
# A test with recorded Python calls has thousands of rows; users ask for the costliest.
_MAX_OPS = 1_000
_LARGEST = 2**63 - 1
_EXACT_OF_OPS = frozenset(name for name, metric in OP_METRICS.items() if metric.family is Family.EXACT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The exact metrics of a test, which usually stay the same from run to run."""

    node_id: str
    steps: int  # the number of active steps
    sources: tuple[str, ...] = ()  # the sources of ops that were recorded
    totals: Mapping[str, Samples] = field(default_factory=dict)  # the exact totals, per step
    # The exact metrics by op and metric, without zeros.
    ops: Mapping[str, Mapping[str, Samples]] = field(default_factory=dict)
    ops_omitted: bool = False  # whether some ops were not kept, so that a missing one may have run
    # The varying totals (times, peaks), in the order of their values in a run's record.
    measured: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A JSON text that records refer to by its digest."""

    digest: str
    text: str

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Definition:
        """The definition of a JSON object."""
        text = json.dumps(document, separators=(",", ":"), sort_keys=True)
        return cls(digest=digest_of(text), text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHead:
    """A run without its tests."""

    run_id: str
    created: datetime  # when it was measured
    committed: datetime | None  # when its commit was made; None if git was not asked or does not know
    commit: Commit | None  # the measured commit; None outside a repository
    name: str | None  # the name it was saved under, if any

    @property
    def at(self) -> datetime:
        """When its commit was made, because a measuring machine's clock may be wrong; else `created`. UTC."""
        return (self.committed or self.created).astimezone(UTC)

    @property
    def order(self) -> tuple[datetime, datetime, str]:
        """Its sort key among runs."""
        return (self.at, self.created, self.run_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run in the history."""

    head: RunHead
    environment: Definition  # the definition of its fingerprint
    # Each test's counts, and the values of `Counts.measured`.
    tests: tuple[tuple[Definition, tuple[int, ...]], ...]


def digest_of(text: str) -> str:
    """The digest that names a definition."""
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:DIGEST_LENGTH]


def record_of(run: Run, *, committed: datetime | None) -> RunRecord:
    """The record of a run, without failed, incompletely measured and carried-over tests."""
    told = [
        test
        for test in run.tests
        if test.is_usable and test.capture.is_complete and not test.capture.is_sampled
        if test.steps > 0 and test.carried_from is None
    ]
    head = RunHead(
        run_id=run.run_id, created=run.created, committed=committed, commit=run.commit, name=run.name
    )
    return RunRecord(
        head=head,
        environment=Definition.of({"fingerprint": dict(run.environment.fingerprint)}),
        tests=tuple(_test_record(test) for test in told),
    )


def counts_definition(counts: Counts) -> Definition:
    """The definition of a test's counts."""
    document: dict[str, Any] = {"node_id": counts.node_id, "steps": counts.steps}
    document["sources"] = list(counts.sources)
    document["totals"] = {name: _to_json(samples) for name, samples in counts.totals.items()}
    document["ops"] = {op: _op_to_json(metrics) for op, metrics in counts.ops.items()}
    if counts.ops_omitted:
        document["ops_omitted"] = True
    document["measured"] = list(counts.measured)
    return Definition.of(document)


def counts_from(document: Mapping[str, Any]) -> Counts:
    """Parse what `counts_definition` wrote; KeyError, TypeError, ValueError, AttributeError for others."""
    steps = _number(document["steps"])
    return Counts(
        node_id=str(document["node_id"]),
        steps=steps,
        sources=tuple(map(str, document["sources"])),
        totals={name: _from_json(value, steps=steps) for name, value in document["totals"].items()},
        ops={op: _op_from_json(value, steps=steps) for op, value in document["ops"].items()},
        ops_omitted=bool(document.get("ops_omitted", False)),
        measured=tuple(map(str, document["measured"])),
    )


def _test_record(test: TestResult) -> tuple[Definition, tuple[int, ...]]:
    known = {name: samples for name, samples in test.totals.items() if name in TOTALS}
    exact = {name: samples for name, samples in known.items() if TOTALS[name].family is Family.EXACT}
    measured = tuple(name for name in known if name not in exact)
    counts = Counts(
        node_id=test.node_id,
        steps=test.steps,
        sources=tuple(sorted(test.sources)),
        totals=exact,
        ops=_ops(test),
        ops_omitted=test.ops_omitted > 0 or len(test.ops) > _MAX_OPS,
        measured=measured,
    )
    # The least time of any step, as in the summary; the mean of anything else.
    values = (
        known[name].low if TOTALS[name].unit is Unit.NS else round(known[name].mean) for name in measured
    )
    return counts_definition(counts), tuple(values)


def _ops(test: TestResult) -> dict[str, dict[str, Samples]]:
    """The exact metrics by op; rows with one name, such as an op's and a call's, are summed."""
    found: dict[str, dict[str, Samples]] = {}
    for row in test.ops[:_MAX_OPS]:
        if row.background:
            continue
        metrics = found.setdefault(row.name, {})
        for name, samples in row.metrics.items():
            if name in _EXACT_OF_OPS and (samples.low or samples.high):
                known = metrics.get(name)
                metrics[name] = samples.plus(known) if known else samples
    return found


def _op_to_json(metrics: Mapping[str, Samples]) -> Any:
    """An op's metrics as JSON; a lone count, as most ops have, is written without its name."""
    if metrics.keys() == {COUNT.name}:
        return _to_json(metrics[COUNT.name])
    return {name: _to_json(samples) for name, samples in metrics.items()}


def _op_from_json(value: Any, *, steps: int) -> dict[str, Samples]:
    if isinstance(value, dict):
        return {name: _from_json(each, steps=steps) for name, each in value.items()}
    return {COUNT.name: _from_json(value, steps=steps)}


def _to_json(samples: Samples) -> int | list[int]:
    return samples.low if samples.is_constant else [samples.low, samples.high, samples.total]


def _from_json(value: Any, *, steps: int) -> Samples:
    if isinstance(value, int):
        return Samples.constant(_number(value), steps=steps)
    low, high, total = map(_number, value)
    return replace(Samples.constant(low, steps=steps), high=high, total=total)


def _number(value: Any) -> int:
    """An integer that a float and a table's column can hold."""
    number = int(value)
    if abs(number) > _LARGEST:
        raise ValueError("no metric is so large")
    return number
