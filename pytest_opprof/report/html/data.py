"""The data of a page's script: the list of tests, the causes of failures, and one test once it is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pytest_opprof.compare.common_cause import CommonCause, common_causes
from pytest_opprof.compare.comparison import Change, LimitResult, TestComparison
from pytest_opprof.compare.phrases import name_of
from pytest_opprof.compare.timing.comparison import TestTimes
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.data_loss import calls_outside_tree, losses_of_test
from pytest_opprof.metrics import OP_METRICS, TOTAL_SELF_CPU_TIME, TOTALS, Metric
from pytest_opprof.report.blocks import BlockRow, advice_on, blocks_of, title_of
from pytest_opprof.report.causes import (
    acceptance,
    accepting,
    again,
    cause_words,
    test_acceptance,
    test_totals,
)
from pytest_opprof.report.device_changes import telling_changes
from pytest_opprof.report.html.packing import columns
from pytest_opprof.report.overview import short_names, summary_metrics, worst_change
from pytest_opprof.report.rows import means_of, numbers_of, unit_of, value_text
from pytest_opprof.report.summary import Summary, TestSummary
from pytest_opprof.results.document import result_to_document
from pytest_opprof.results.run import TestResult

_MOST_TESTS = 20  # the list of all tests shows the others
# A metric over the runs of a history, as `history.lines.page_trends` makes it.
Trend: TypeAlias = Mapping[str, Any]


def page_causes(causes: Sequence[CommonCause], summary: Summary) -> list[dict[str, Any]]:
    """The causes of failures, each with the blocks of its first test."""
    names = short_names([test.node_id for test in summary.tests])
    numbers = {test.node_id: number for number, test in enumerate(summary.tests)}
    return [
        {
            "number": cause.number,
            "words": cause_words(cause),
            "blocks": block_data(cause.tests[0]) if cause.tests[0].verdict is Verdict.REGRESSED else [],
            "tests": [
                {"number": numbers[test.node_id], "name": name, "total": total}
                for test, (name, total) in zip(shown, test_totals(shown, names), strict=True)
            ],
            "more": len(cause.tests) - len(shown),
            "command": acceptance(cause, accepting(summary)),
        }
        for cause in causes
        for shown in [cause.tests[:_MOST_TESTS]]
    ]


def block_data(test: TestComparison) -> list[dict[str, Any]]:
    """The regressions of a test, by line."""
    return [
        {
            "title": title_of(block),
            "is_edited": block.line is not None and block.line.is_edited,
            "text": block.line.text if block.line is not None else "",
            "advice": advice_on(block, test),
            "rows": [_block_row(row) for row in block.rows],
        }
        for block in blocks_of(test)
    ]


def _block_row(row: BlockRow) -> dict[str, Any]:
    change = row.change
    return {
        "name": row.name,
        "op": change.op,
        "caller": change.caller,
        "depth": row.depth,
        **numbers_of(change),
        **means_of(change),
        "words": row.words,
    }


def page_index(summary: Summary) -> dict[str, Any]:
    """The data of a page's script before a test is opened."""
    causes = common_causes(summary.exact)
    cause_of = {test.node_id: cause.number for cause in causes for test in cause.tests}
    exact = [test.exact for test in summary.tests if test.exact is not None]
    shown = [metric.name for metric in (*summary_metrics(exact), TOTAL_SELF_CPU_TIME)]
    return {
        "has_base": summary.exact.base is not None,
        "has_times": summary.times is not None,
        "causes": page_causes(causes, summary),
        "columns": shown,
        "totals": _metrics(TOTALS),
        "op_metrics": _metrics(OP_METRICS),
        "tests": [
            _test_row(test, number=number, shown=shown) | {"cause": cause_of.get(test.node_id)}
            for number, test in enumerate(summary.tests)
        ],
    }


def otherwise(test: TestSummary) -> str:
    """The words in place of a missing verdict."""
    return "measured" if test.did_run else "not run"


def _metrics(metrics: Mapping[str, Metric]) -> dict[str, dict[str, str]]:
    return {
        name: {"label": about.label, "unit": about.unit, "family": about.family, "worse": about.worse}
        for name, about in metrics.items()
    }


def _test_row(test: TestSummary, *, number: int, shown: Sequence[str]) -> dict[str, Any]:
    sides = (test.exact.base, test.exact.head) if test.exact else (None, None)
    cause = test.times.cause if test.times else ""
    return {
        "number": number,
        "node_id": test.node_id,
        "verdict": test.verdict,
        "otherwise": otherwise(test),
        "worst": cause or (worst_change(test.exact) if test.exact else ""),
        "times": _times(test.times),
        "totals": {name: [_total(side, name) for side in sides] for name in shown},
    }


def _total(side: TestResult | None, name: str) -> Any:
    found = side.totals.get(name) if side else None
    return None if found is None else found.summarized().to_document()


def _times(times: TestTimes | None) -> dict[str, Any] | None:
    if times is None or times.times is None:
        return None
    base, head = times.times.quartiles
    return {"base_ns": base, "head_ns": head, "change_ppm": times.times.change_ppm}


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
