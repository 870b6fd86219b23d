"""The list of a page's tests, with the totals worth a column, and the metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_opprof.compare.common_cause import common_causes
from pytest_opprof.compare.timing.comparison import TestTimes
from pytest_opprof.metrics import OP_METRICS, TOTAL_SELF_CPU_TIME, TOTALS, Metric
from pytest_opprof.report.html.causes import page_causes
from pytest_opprof.report.overview import summary_metrics, worst_change
from pytest_opprof.report.summary import Summary, TestSummary
from pytest_opprof.results.run import TestResult


def page_index(summary: Summary) -> dict[str, Any]:
    """The data of a page's script before a test is opened."""
    causes = common_causes(summary.exact)
    cause_of = {test.node_id: cause.number for cause in causes for test in cause.tests}
    exact = [test.exact for test in summary.tests if test.exact is not None]
    columns = [metric.name for metric in (*summary_metrics(exact), TOTAL_SELF_CPU_TIME)]
    return {
        "has_base": summary.exact.base is not None,
        "has_times": summary.times is not None,
        "causes": page_causes(causes, summary),
        "columns": columns,
        "totals": _metrics(TOTALS),
        "op_metrics": _metrics(OP_METRICS),
        "tests": [
            _row(test, number=number, columns=columns) | {"cause": cause_of.get(test.node_id)}
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


def _row(test: TestSummary, *, number: int, columns: Sequence[str]) -> dict[str, Any]:
    sides = (test.exact.base, test.exact.head) if test.exact else (None, None)
    cause = test.times.cause if test.times else ""
    return {
        "number": number,
        "node_id": test.node_id,
        "verdict": test.verdict,
        "otherwise": otherwise(test),
        "worst": cause or (worst_change(test.exact) if test.exact else ""),
        "times": _times(test.times),
        "totals": {name: [_total(side, name) for side in sides] for name in columns},
    }


def _total(side: TestResult | None, name: str) -> Any:
    found = side.totals.get(name) if side else None
    return None if found is None else found.summarized().to_document()


def _times(times: TestTimes | None) -> dict[str, Any] | None:
    if times is None or times.times is None:
        return None
    base, head = times.times.quartiles
    return {"base_ns": base, "head_ns": head, "change_ppm": times.times.change_ppm}
