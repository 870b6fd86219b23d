"""A report's page with what lies beside its comparison: the trends of its tests, and their traces."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from pytest_opprof.errors import StoreError
from pytest_opprof.history.index import HistoryIndex
from pytest_opprof.history.lines import trend_label
from pytest_opprof.history.trend import trend_of, wanted_metrics
from pytest_opprof.report.html.page import html_report
from pytest_opprof.report.html.timeline import traces_by_test
from pytest_opprof.report.html.trends import MetricTrend, TrendPoint
from pytest_opprof.report.summary import Summary
from pytest_opprof.results.files import shown

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pytest_opprof.history.log import HistoryLog
    from pytest_opprof.history.trend import Point, Trend
    from pytest_opprof.report.summary import Judged

# A page of many tests has room for so many runs of each: the latest.
_MOST_RUNS = 200


def page_with(comparison: Judged, *, history: HistoryLog | None, traces: Path | None) -> str:
    """The HTML report with more in it than the comparison has.

    Args:
        comparison: what is reported.
        history: draw how its tests did in these runs.
        traces: draw a step of each trace that this folder has of its tests.

    Raises:
        OpprofError: the history, the folder or a trace cannot be read, or jinja2 is not installed.
    """
    node_ids = [test.node_id for test in Summary.of(comparison).tests]
    trends, files = {}, {}
    if history is not None:
        with HistoryIndex(history) as index:
            trends = page_trends(index, node_ids)
    if traces is not None:
        try:
            files = traces_by_test(traces, node_ids)
        except OSError as error:
            raise StoreError(f"{shown(traces)}: its traces cannot be listed ({error.strerror})") from error
    return html_report(comparison, history=trends, traces=files)


def page_trends(index: HistoryIndex, node_ids: Iterable[str]) -> dict[str, tuple[MetricTrend, ...]]:
    """How many ops a step of each test had, and how long they took, from run to run.

    Args:
        index: of the history.
        node_ids: the tests; those that the history does not know are left out.
    """
    found = {}
    for node_id in node_ids:
        results = index.results(node_id)
        if results:
            trends = (trend_of(node_id, path, results) for path in wanted_metrics(None, results))
            found[node_id] = tuple(map(_of_page, trends))
    return found


def _of_page(trend: Trend) -> MetricTrend:
    return MetricTrend(
        label=trend_label(trend),
        unit=trend.path.metric.unit,
        points=tuple(map(_point, trend.points[-_MOST_RUNS:])),
        note=trend.note,
    )


def _point(point: Point) -> TrendPoint:
    run = point.result.run
    when = (run.committed or run.created).astimezone(UTC)
    commit = f" {run.commit.short}" if run.commit else ""
    return TrendPoint(
        title=f"{when:%Y-%m-%d}{commit}",
        value=None if point.samples is None else point.samples.mean,
        is_change=point.is_change,
        because=", ".join(point.because),
    )
