"""A run as the history keeps it: each test's exact metrics once, and what varies as a few integers a run.

Counts hardly ever change from run to run, so what is exact of a test is a definition, named by its digest,
that any number of runs point to. A run's own record is then some bytes a test.
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
# A test whose Python calls are recorded has thousands of rows; the costliest are the ones that are asked for.
_MAX_OPS = 1_000
_EXACT_OF_OPS = frozenset(name for name, metric in OP_METRICS.items() if metric.family is Family.EXACT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What of a test is exact, and so usually the same from run to run.

    Attributes:
        steps: Its active steps.
        sources: What was listened to.
        totals: The exact totals, in each step.
        ops: The exact metrics of each op, by the op's name and the metric's; what is 0 is left out.
        ops_omitted: Whether there were more ops than are kept, so that one that is missing may have run.
        measured: The totals that vary (times, peaks), in the order in which a run's record has their values.
    """

    node_id: str
    steps: int
    sources: tuple[str, ...] = ()
    totals: Mapping[str, Samples] = field(default_factory=dict)
    ops: Mapping[str, Mapping[str, Samples]] = field(default_factory=dict)
    ops_omitted: bool = False
    measured: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """Something that records point to: its digest, and the JSON it is the digest of."""

    digest: str
    text: str

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Definition:
        """The definition of a JSON object."""
        text = json.dumps(document, separators=(",", ":"), sort_keys=True)
        return cls(digest=digest_of(text), text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHead:
    """What the history knows of a run apart from its tests.

    Attributes:
        created: When it was measured.
        committed: When its commit was made, as git says; None where git was not asked or does not know.
        commit: What was measured; None outside a repository.
        name: The name it was saved under, if it was.
    """

    run_id: str
    created: datetime
    committed: datetime | None
    commit: Commit | None
    name: str | None

    @property
    def at(self) -> datetime:
        """Its commit's time, as a measuring machine's clock may be wrong; else when it was measured. UTC."""
        return (self.committed or self.created).astimezone(UTC)

    @property
    def order(self) -> tuple[datetime, datetime, str]:
        """Where it stands among runs."""
        return (self.at, self.created, self.run_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run in the history.

    Attributes:
        environment: Its fingerprint, as a definition.
        tests: What each test measured: its counts, and the values of `Counts.measured`.
    """

    head: RunHead
    environment: Definition
    tests: tuple[tuple[Definition, tuple[int, ...]], ...]


def digest_of(text: str) -> str:
    """The name of a definition."""
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:DIGEST_LENGTH]


def record_of(run: Run, *, committed: datetime | None) -> RunRecord:
    """The record of a run.

    Tests that did not pass, were not measured whole, or were carried over from an earlier run are left out.
    """
    told = [test for test in run.tests if _tells_all(test) and test.carried_from is None]
    head = RunHead(
        run_id=run.run_id, created=run.created, committed=committed, commit=run.commit, name=run.name
    )
    return RunRecord(
        head=head,
        environment=environment_definition(run.environment.fingerprint),
        tests=tuple(_test_record(test) for test in told),
    )


def environment_definition(fingerprint: Mapping[str, str]) -> Definition:
    """A fingerprint, to be pointed to."""
    return Definition.of({"fingerprint": dict(fingerprint)})


def counts_definition(counts: Counts) -> Definition:
    """A test's counts, to be pointed to."""
    document: dict[str, Any] = {"node_id": counts.node_id, "steps": counts.steps}
    document["sources"] = list(counts.sources)
    document["totals"] = {name: _to_json(samples) for name, samples in counts.totals.items()}
    document["ops"] = {op: _op_to_json(metrics) for op, metrics in counts.ops.items()}
    if counts.ops_omitted:
        document["ops_omitted"] = True
    document["measured"] = list(counts.measured)
    return Definition.of(document)


def counts_from(document: Mapping[str, Any]) -> Counts:
    """What `counts_definition` wrote.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: it is something else.
    """
    steps = int(document["steps"])
    return Counts(
        node_id=str(document["node_id"]),
        steps=steps,
        sources=tuple(map(str, document["sources"])),
        totals={name: _from_json(value, steps=steps) for name, value in document["totals"].items()},
        ops={op: _op_from_json(value, steps=steps) for op, value in document["ops"].items()},
        ops_omitted=bool(document.get("ops_omitted", False)),
        measured=tuple(map(str, document["measured"])),
    )


def _tells_all(test: TestResult) -> bool:
    return test.is_usable and test.capture.is_complete and not test.capture.is_sampled and test.steps > 0


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
    return counts_definition(counts), tuple(_told(known[name], unit=TOTALS[name].unit) for name in measured)


def _ops(test: TestResult) -> dict[str, dict[str, Samples]]:
    """The exact metrics by op; rows of one name, such as an op's and a call's, are summed."""
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


def _told(samples: Samples, *, unit: Unit) -> int:
    """Of a time the least of the steps, as in the summary; of anything else the mean."""
    return samples.low if unit is Unit.NS else round(samples.mean)


def _op_to_json(metrics: Mapping[str, Samples]) -> Any:
    """A count alone is written as such: most ops have no other metric."""
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
        return Samples.constant(value, steps=steps)
    low, high, total = map(int, value)
    return replace(Samples.constant(low, steps=steps), high=high, total=total)
