"""Runs and tests to documents and back: plain dicts in the shape of run.schema.json.

Reading expects a document that its schema accepted (`results.schema`) and checks only what a schema cannot:
that samples fit the number of steps, and that a node's parent comes before it. If they do not, a
DocumentError says `where`, in which file, and at which JSON path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from pytest_opprof.errors import DocumentError
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import COUNT, ROW_METRICS
from pytest_opprof.results.members import Document, from_members, time_to_document, to_members
from pytest_opprof.results.names import bounded_notes, bounded_text
from pytest_opprof.results.run import CarriedFrom, OpRow, Run, TestResult, Timing, TreeNode
from pytest_opprof.results.samples import Samples, SamplesDocument

RUN_KIND = "opprof-run"
RUN_SCHEMA_VERSION = 2
_ASKED_FOR = ("accepted", "functions", "calls", "lines", "callers", "ranks")


def run_to_document(run: Run) -> Document:
    """A run in the shape of run.schema.json."""
    # `created` is near the beginning: a store reads it without parsing the rest.
    return {
        "kind": RUN_KIND,
        "schema_version": RUN_SCHEMA_VERSION,
        **side_to_document(run),
        "notes": list(bounded_notes(run.notes)),
        "tests": [result_to_document(test) for test in run.tests],
    }


def side_to_document(run: Run) -> Document:
    """A run's document without its tests."""
    return {
        "created": time_to_document(run.created),
        "run_id": run.run_id,
        "opprof_version": run.opprof_version,
        "name": run.name,
        "commit": None if run.commit is None else to_members(run.commit),
        "environment": {
            "fingerprint": dict(sorted(run.environment.fingerprint.items())),
            "details": dict(sorted(run.environment.details.items())),
        },
    }


def result_to_document(test: TestResult) -> Document:
    """One test in the shape of run.schema.json's ``$defs/test``."""
    document = to_members(
        test,
        measurement=to_members(test.measurement, reason=bounded_text(test.measurement.reason)),
        unheard={source: bounded_text(why) for source, why in sorted(test.unheard.items())},
        settings=dict(sorted(test.settings.items())),
        timing=to_members(test.timing, reason=bounded_text(test.timing.reason)),
        accepted={path: time_to_document(created) for path, created in sorted(test.accepted.items())},
        functions={total: dict(sorted(counts.items())) for total, counts in test.functions.items()},
        ops=[_op_to_document(row) for row in test.ops],
        # By hand, because a test has thousands of nodes.
        tree=[
            {"parent": node.parent, "name": node.name, "count": node.count, "self_ns": node.self_ns}
            for node in test.tree
        ],
    )
    # Only on request, like the ops' rows below.
    for name in _ASKED_FOR:
        if not getattr(test, name):
            del document[name]
    if test.timing == Timing():
        del document["timing"]
    return document


def run_from_document(document: Document, *, where: str) -> Run:
    """The run that a document holds, which run.schema.json accepted."""
    tests = tuple(
        result_from_document(test, where=where, path=f"tests[{index}]")
        for index, test in enumerate(document["tests"])
    )
    refuse_repeats((test.node_id for test in tests), where=where, path="tests")
    return side_from_document(document, where=where, notes=tuple(document["notes"]), tests=tests)


def side_from_document(
    document: Document, *, where: str, notes: tuple[str, ...] = (), tests: tuple[TestResult, ...] = ()
) -> Run:
    """A run of what `side_to_document` wrote, with these notes and tests."""
    created = time_from_document(document["created"], where=where, path="created")
    return from_members(Run, document, created=created, notes=notes, tests=tests)


def result_from_document(document: Document, *, where: str, path: str) -> TestResult:
    """The test that a part of a document holds, which ``$defs/test`` of run.schema.json accepted."""
    carried, steps = document["carried_from"], document["steps"]
    ops = tuple(
        _op_from_document(row, steps=steps, where=where, path=f"{path}.ops[{index}]")
        for index, row in enumerate(document["ops"])
    )
    refuse_repeats((row.key for row in ops), where=where, path=f"{path}.ops")
    timing = from_members(Timing, document.get("timing", {}))
    bare = TestResult(node_id=document["node_id"], steps=steps, timing=timing)
    return from_members(
        TestResult,
        document,
        timing=timing,
        accepted={
            entry: time_from_document(created, where=where, path=f"{path}.accepted[{entry!r}]")
            for entry, created in document.get("accepted", {}).items()
        },
        callers={place: tuple(callers) for place, callers in document.get("callers", {}).items()},
        totals={
            name: samples_from_document(
                samples, steps=bare.steps_of(name), where=where, path=f"{path}.totals[{name!r}]"
            )
            for name, samples in document["totals"].items()
        },
        ops=ops,
        tree=tuple(
            _node_from_document(node, index, where=where, path=f"{path}.tree[{index}]")
            for index, node in enumerate(document["tree"])
        ),
        carried_from=None if carried is None else _origin(carried, where=where, path=f"{path}.carried_from"),
    )


def _origin(document: Document, *, where: str, path: str) -> CarriedFrom:
    created = time_from_document(document["created"], where=where, path=f"{path}.created")
    return from_members(CarriedFrom, document, created=created)


def samples_from_document(document: SamplesDocument, *, steps: int, where: str, path: str) -> Samples:
    """Samples of a test with so many steps."""
    try:
        return Samples.from_document(document, steps=steps)
    except ValueError as error:
        raise contradiction(where, path=path, what=str(error)) from error


def refuse_repeats(keys: Iterable[object], *, where: str, path: str) -> None:
    """Check that nothing stands twice in a list whose entries are found by their key."""
    seen = set()
    for index, key in enumerate(keys):
        if key in seen:
            raise contradiction(where, path=f"{path}[{index}]", what="it is in the list twice")
        seen.add(key)


def contradiction(where: str, *, path: str, what: str) -> DocumentError:
    """What is raised for numbers that a schema accepts and that cannot be."""
    return refusal(where, f"{path}: {what}")


def refusal(where: str, what: str) -> DocumentError:
    """What is raised for a document that cannot be used: which, and what is wrong with it."""
    return DocumentError(f"{where}: {what}. The file was not used")


def time_from_document(text: str, *, where: str, path: str) -> datetime:
    """The moment that `time_to_document` wrote."""
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise contradiction(where, path=path, what=f"{text} is not a time") from error


def _op_to_document(row: OpRow) -> Document:
    document: Document = {"name": row.name, "kind": row.kind.value}
    # Only what is out of the ordinary: a run has many thousand rows.
    if row.background:
        document["background"] = True
    if row.is_async:
        document["is_async"] = True
    document["metrics"] = {name: samples.to_document() for name, samples in row.metrics.items()}
    if row.parent_op is not None:
        document["parent_op"] = row.parent_op
    if row.source is not None:
        document["source"] = row.source
    if row.places:
        document["places"] = [
            {"source": source, "count": count}
            | {metric: amounts[source] for metric, amounts in row.parts.items() if source in amounts}
            for source, count in row.places.items()
        ]
    return document


def _op_from_document(document: Document, *, steps: int, where: str, path: str) -> OpRow:
    places = document.get("places", ())
    # By hand, because a run has thousands of rows.
    return OpRow(
        name=document["name"],
        kind=OpKind(document["kind"]),
        background=document.get("background", False),
        is_async=document.get("is_async", False),
        # What a later release measures is left out.
        metrics={
            name: samples_from_document(values, steps=steps, where=where, path=f"{path}.metrics.{name}")
            for name, values in document["metrics"].items()
            if name in ROW_METRICS
        },
        parent_op=document.get("parent_op"),
        source=document.get("source"),
        places={place["source"]: place["count"] for place in places},
        parts=_parts_from_document(places),
    )


def _parts_from_document(places: Iterable[Document]) -> Mapping[str, Mapping[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for place in places:
        for metric in ROW_METRICS.keys() & place.keys() - {COUNT.name}:
            found.setdefault(metric, {})[place["source"]] = place[metric]
    return found


def _node_from_document(document: Mapping[str, Any], index: int, *, where: str, path: str) -> TreeNode:
    if document["parent"] >= index:
        raise contradiction(where, path=f"{path}.parent", what=f"{document['parent']} is not an earlier node")
    return TreeNode(
        parent=document["parent"],
        name=document["name"],
        count=document["count"],
        self_ns=document["self_ns"],
    )
