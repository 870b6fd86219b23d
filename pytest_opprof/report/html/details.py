"""One test for the script of a page: both sides as in documents, and its changes in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pytest_opprof.compare.comparison import Change, LimitResult, TestComparison
from pytest_opprof.compare.phrases import name_of
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.data_loss import calls_outside_tree, losses_of_test
from pytest_opprof.report.causes import accepting, again, test_acceptance
from pytest_opprof.report.device_changes import telling_changes
from pytest_opprof.report.html.causes import block_data
from pytest_opprof.report.html.index import otherwise
from pytest_opprof.report.html.packing import columns
from pytest_opprof.report.rows import means_of, numbers_of, unit_of, value_text
from pytest_opprof.report.summary import Summary, TestSummary
from pytest_opprof.results.document import result_to_document
from pytest_opprof.results.run import TestResult

# A metric over the runs of a history, as `history.lines.page_trends` makes it.
Trend: TypeAlias = Mapping[str, Any]


def test_details(
    test: TestSummary, summary: Summary, *, times: Mapping[str, Any] | None, trends: Sequence[Trend]
) -> dict[str, Any]:
    """Everything that a page shows of a test once it is opened; `times` are those of an A/B's document."""
    exact = test.exact
    return {
        "node_id": test.node_id,
        "verdict": test.verdict,
        "otherwise": otherwise(test),
        "reason": exact.reason if exact and times else test.reason,
        "causes": [] if exact is None else block_data(exact),
        "commands": _commands(test, summary) if test.is_failing else [],
        "changes": [] if exact is None else _changes(exact),
        "limits": [] if exact is None else [_limit(limit) for limit in exact.limits],
        "advisories": [] if exact is None else exact.advisories,
        "base": _side(exact.base if exact else None),
        "head": _side(exact.head if exact else None),
        "times": times,
        "trends": trends,
    }


def _side(side: TestResult | None) -> Mapping[str, Any] | None:
    if side is None:
        return None
    document = result_to_document(side)
    untold = calls_outside_tree(side)
    cut = [f"Calls that the call tree has no room for: {untold}"] if untold else []
    return document | {
        "ops": columns([row | row.pop("metrics") for row in document["ops"]]),  # a column for each metric
        "tree": columns(document["tree"]),
        "lacking": [*losses_of_test(side), *cut],
    }


def _commands(test: TestSummary, summary: Summary) -> list[str]:
    """The commands to see it again, and to accept it."""
    can_be_accepted = test.verdict is Verdict.MISSING or (test.exact is not None and test.exact.regressed)
    accept = test_acceptance(test.node_id, accepting(summary)) if can_be_accepted else ""
    return list(filter(None, (again(summary, test), accept)))


def _changes(test: TestComparison) -> list[dict[str, Any]]:
    """All changes, totals last, like a sum; those marked that no other says better."""
    telling = set(map(id, telling_changes(test)))
    changes = sorted(test.changes, key=lambda change: change.op is None)
    return [_change(change) | {"telling": id(change) in telling} for change in changes]


def _change(change: Change) -> dict[str, Any]:
    about = change.about
    return {
        "op": change.op,
        "kind": change.kind,
        "background": change.background,
        "name": name_of(change),
        "label": about.label,
        "family": about.family,
        "worse": about.worse,
        **numbers_of(change),
        **means_of(change),
        "verdict": change.verdict,
        "cause": change.cause,
        "reason": change.reason,
    }


def _limit(limit: LimitResult) -> dict[str, Any]:
    measured = "nothing" if limit.value is None else value_text(limit.value, unit=unit_of(limit.path))
    return {
        "path": limit.path,
        "limit": limit.limit,
        "measured": measured,
        "value": None if limit.value is None else limit.value.mean,
        "verdict": limit.verdict,
        "reason": limit.reason,
    }
