"""Accepted rises: ``.opprof/accepted.json``, committed with the change that needs them.

An entry lets one metric of one test rise up to a value. It ends when a baseline was measured with it, because
that baseline has the value. A save removes such entries from the file. But CI commits nothing, so a run also
lists the entries that its tests were measured with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from pytest_opprof.baselines.folder import project_writing
from pytest_opprof.metrics import OP_METRICS, TOTALS, Metric, MetricPath
from pytest_opprof.results.document import contradiction, refuse_repeats, time_from_document
from pytest_opprof.results.files import read_document, shown, write_bytes
from pytest_opprof.results.members import Document, from_members, to_members
from pytest_opprof.results.run import Commit, Run, TestResult
from pytest_opprof.results.schema import Contract, validate
from pytest_opprof.units import format_quantity

ACCEPTED = "accepted.json"
# The test, the op or None for a total, and the metric's name or None for the test itself.
Key = tuple[str, str | None, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """One metric of one test, and its accepted value in a step; or a test that may be missing."""

    test: str
    op: str | None  # the op's name; None for a total
    metric: str | None  # the metric's name; None for the test itself
    # The value measured when it was accepted, which passes. None for the test itself.
    value: int | None
    base: int | None = None  # the baseline's value then; None for an entry of an older release
    reason: str  # why, in the user's words
    baseline: str | None  # the name of the baseline that it exceeds; None for a run without a name
    created: datetime
    commit: Commit | None = None  # the measured commit; None outside a repository

    @property
    def key(self) -> Key:
        """Its subject, unique among the entries."""
        return (self.test, self.op, self.metric)

    @property
    def about(self) -> Metric:
        """The metric itself; the entry must have one."""
        assert self.metric is not None
        return TOTALS[self.metric] if self.op is None else OP_METRICS[self.metric]

    @property
    def path(self) -> str:
        """The metric as users write it, ``aten::clone.count``; ``test`` for the test itself."""
        return "test" if self.metric is None else str(MetricPath(op=self.op, metric=self.about))

    @property
    def value_text(self) -> str:
        """The value for a reader, with its unit."""
        return "" if self.value is None else format_quantity(self.value, unit=self.about.unit)

    @property
    def words(self) -> str:
        """What it accepts: ``ops.count up to 12``."""
        return "the test may be missing" if self.metric is None else f"{self.path} up to {self.value_text}"

    def is_spent(self, before: TestResult) -> bool:
        """Whether a baseline's test was measured with it: the baseline has the value, and ends it."""
        known = before.accepted.get(self.path)
        return known is not None and known >= self.created


def read_accepted(folder: Path) -> Mapping[Key, Acceptance]:
    """The acceptances in a project's ``.opprof`` by subject, none without a file; raises `OpprofError`.

    Those of a later release's metrics are left out: this one does not measure them.
    """
    return _read(folder)[0]


def accepted_from_document(
    document: Document, *, where: str, drops_unknown: bool = False
) -> Mapping[Key, Acceptance]:
    """The entries of a document that accepted.schema.json accepted, by subject; raises `DocumentError`."""
    entries = [
        _from_document(entry, where=where, path=f"accepted[{index}]")
        for index, entry in enumerate(document["accepted"])
        if not (drops_unknown and _is_unknown(entry))
    ]
    refuse_repeats((f"{entry.test} {entry.path}" for entry in entries), where=where, path="accepted")
    return {entry.key: entry for entry in entries}


def accept(folder: Path, entries: Iterable[Acceptance]) -> Path:
    """Add entries, each of which replaces an earlier one on its subject, and return the file's path."""
    _change(folder, lambda known: {**known, **{entry.key: entry for entry in entries}})
    return folder / ACCEPTED


def with_acceptances(run: Run, accepted: Mapping[Key, Acceptance]) -> Run:
    """The run, with the entries that each of its tests was measured with: a baseline ends them."""
    by_test: dict[str, dict[str, datetime]] = {}
    for entry in accepted.values():
        by_test.setdefault(entry.test, {})[entry.path] = entry.created
    if not by_test:
        return run
    tests = (replace(test, accepted=by_test.get(test.node_id, {})) for test in run.tests)
    return replace(run, tests=tuple(tests))


def prune(folder: Path, run: Run, *, is_committed: bool = False) -> tuple[Acceptance, ...]:
    """Remove and return entries that a newly saved baseline replaces by its own value.

    On another branch than the baseline's the entries stay, because its rises are not merged yet; except if
    it `is_committed`: a file of the work tree, and so part of this branch.
    """
    branch = run.commit.branch if run.commit else None
    stored = {test.node_id for test in run.tests}
    measured = {test.node_id for test in run.tests if test.is_usable and test.carried_from is None}
    spent = tuple(
        entry
        for entry in read_accepted(folder).values()
        if (entry.test in measured or (entry.metric is None and entry.test not in stored))
        and entry.baseline in {None, run.name}
        and (is_committed or branch in {None, run.name})
    )
    if spent:
        gone = {entry.key for entry in spent}
        _change(folder, lambda known: {key: entry for key, entry in known.items() if key not in gone})
    return spent


def _read(folder: Path) -> tuple[Mapping[Key, Acceptance], list[Document]]:
    """The file's entries by subject, and those of unknown metrics."""
    path = folder / ACCEPTED
    if not path.exists():
        return {}, []
    document = read_document(path, Contract.ACCEPTED)
    unknown = [entry for entry in document["accepted"] if _is_unknown(entry)]
    return accepted_from_document(document, where=shown(path), drops_unknown=True), unknown


def _change(folder: Path, change: Callable[[Mapping[Key, Acceptance]], Mapping[Key, Acceptance]]) -> None:
    """Read, change and write the file under a lock."""
    with project_writing(folder):
        known, unknown = _read(folder)
        entries = [*map(_to_document, change(known).values()), *unknown]
        path = folder / ACCEPTED
        document = {
            "kind": Contract.ACCEPTED.kind,
            "schema_version": Contract.ACCEPTED.schema_version,
            "accepted": sorted(
                entries, key=lambda entry: (entry["test"], entry["op"] or "", entry["metric"] or "")
            ),
        }
        validate(document, Contract.ACCEPTED, where=shown(path))
        # For reviewers: one value a line, in an order that does not depend on time. A lone surrogate has no
        # UTF-8, so it is escaped.
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        write_bytes(path, text.encode("utf-8", "backslashreplace"))


def _is_unknown(document: Document) -> bool:
    known = TOTALS if document["op"] is None else OP_METRICS
    return document["metric"] is not None and document["metric"] not in known


def _to_document(entry: Acceptance) -> Document:
    document = to_members(entry)
    return {name: value for name, value in document.items() if name != "base" or value is not None}


def _from_document(document: Document, *, where: str, path: str) -> Acceptance:
    of_test = (document["op"], document["metric"], document["value"]) == (None, None, None)
    if not of_test and document["value"] is None:
        raise contradiction(where, path=f"{path}.value", what="a metric needs a value")
    if not of_test and (document["metric"] is None or _is_unknown(document)):
        raise contradiction(where, path=f"{path}.metric", what=f"no metric {document['metric']!a}")
    created = time_from_document(document["created"], where=where, path=f"{path}.created")
    return from_members(Acceptance, document, created=created)
