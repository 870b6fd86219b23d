"""Comparisons to documents and back: plain dicts in the shape of comparison.schema.json.

The errors are those of `results.files` and `results.document`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pytest_opprof.compare.comparison import Change, Comparison, LimitResult, TestComparison
from pytest_opprof.metrics import OP_METRICS, TOTALS
from pytest_opprof.results.document import (
    contradiction,
    refuse_repeats,
    result_from_document,
    result_to_document,
    samples_from_document,
    side_from_document,
    side_to_document,
    time_from_document,
)
from pytest_opprof.results.files import document_to_bytes, read_document, shown, write_document
from pytest_opprof.results.members import Document, from_members, gc_paused, to_members
from pytest_opprof.results.names import bounded_notes, bounded_text
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples
from pytest_opprof.results.schema import Contract

# Left out if they are empty: a comparison has many changes.
_RARE: Final = frozenset({"is_free", "begins", "line", "caller"})


def write_comparison(path: Path, comparison: Comparison) -> None:
    """Write a comparison; ``.gz`` at the end of the name packs it."""
    write_document(path, comparison_to_document(comparison), Contract.COMPARISON)


def comparison_to_bytes(comparison: Comparison, *, where: str) -> bytes:
    """The content of a comparison's file."""
    return document_to_bytes(comparison_to_document(comparison), Contract.COMPARISON, where=where)


@gc_paused()
def read_comparison(path: Path) -> Comparison:
    """Read a comparison."""
    return comparison_from_document(read_document(path, Contract.COMPARISON), where=shown(path))


def comparison_to_document(comparison: Comparison) -> Document:
    """A comparison in the shape of comparison.schema.json."""
    return {
        "kind": Contract.COMPARISON.kind,
        "schema_version": Contract.COMPARISON.schema_version,
        **to_members(
            comparison,
            base=None if comparison.base is None else side_to_document(comparison.base),
            head=side_to_document(comparison.head),
            notes=list(bounded_notes(comparison.notes)),
            tests=[test_to_document(test) for test in comparison.tests],
        ),
    }


def comparison_from_document(document: Document, *, where: str) -> Comparison:
    """The comparison that a document holds, which comparison.schema.json accepted."""
    tests = tuple(
        _test_from_document(test, where=where, path=f"tests[{index}]")
        for index, test in enumerate(document["tests"])
    )
    refuse_repeats((test.node_id for test in tests), where=where, path="tests")
    return from_members(
        Comparison,
        document,
        created=time_from_document(document["created"], where=where, path="created"),
        base=None if document["base"] is None else side_from_document(document["base"], where=where),
        head=side_from_document(document["head"], where=where),
        tests=tests,
    )


def test_to_document(test: TestComparison) -> Document:
    """One test of a comparison in its document's shape."""
    return to_members(
        test,
        reason=bounded_text(test.reason),
        changes=[_change_to_document(change) for change in test.changes],
        limits=[to_members(limit, reason=bounded_text(limit.reason)) for limit in test.limits],
        advisories=list(bounded_notes(test.advisories)),
        base=None if test.base is None else result_to_document(test.base),
        head=None if test.head is None else result_to_document(test.head),
    )


def _test_from_document(document: Document, *, where: str, path: str) -> TestComparison:
    base, head = (
        None
        if document[side] is None
        else result_from_document(document[side], where=where, path=f"{path}.{side}")
        for side in ("base", "head")
    )
    return from_members(
        TestComparison,
        document,
        changes=tuple(
            _change_from_document(change, (base, head), where=where, path=f"{path}.changes[{index}]")
            for index, change in enumerate(document["changes"])
        ),
        limits=tuple(
            from_members(
                LimitResult,
                limit,
                value=_samples(
                    limit, "value", head, metric=limit["path"], where=where, path=f"{path}.limits[{index}]"
                ),
            )
            for index, limit in enumerate(document["limits"])
        ),
        base=base,
        head=head,
    )


def _change_to_document(change: Change) -> Document:
    document = to_members(change, cause=bounded_text(change.cause), reason=bounded_text(change.reason))
    return {name: value for name, value in document.items() if value or name not in _RARE}


def _change_from_document(
    document: Document, sides: tuple[TestResult | None, TestResult | None], *, where: str, path: str
) -> Change:
    known = TOTALS if document["op"] is None else OP_METRICS
    metric = document["metric"]
    if metric not in known:
        raise contradiction(where, path=f"{path}.metric", what=f"no metric {metric!a}")
    return from_members(
        Change,
        document,
        base=_samples(document, "base", sides[0], metric=metric, where=where, path=path),
        head=_samples(document, "head", sides[1], metric=metric, where=where, path=path),
    )


def _samples(
    document: Document, name: str, side: TestResult | None, *, metric: str, where: str, path: str
) -> Samples | None:
    if document[name] is None:
        return None
    if side is None:
        raise contradiction(where, path=f"{path}.{name}", what="its side of the test is missing")
    steps = side.steps_of(metric)
    return samples_from_document(document[name], steps=steps, where=where, path=f"{path}.{name}")
