"""The trends of tests for a report's page."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_opprof.history.lines import trend_label
from pytest_opprof.history.reader import HistoryReader
from pytest_opprof.history.trend import Point, Trend, trend_of, wanted_metrics
from pytest_opprof.report.html.trends import MetricTrend, TrendPoint

# The most runs of each test that a page of many tests has room for: the latest.
_MOST_RUNS = 200


def page_trends(reader: HistoryReader, node_ids: Iterable[str]) -> dict[str, tuple[MetricTrend, ...]]:
    """The trends of each known test's ops per step and of their time."""
    found = {}
    for node_id in node_ids:
        results = reader.results(node_id)
        if results:
            trends = (trend_of(node_id, path, results) for path in wanted_metrics(None, results))
            found[node_id] = tuple(map(_of_page, trends))
    return found


def _of_page(trend: Trend) -> MetricTrend:
    return MetricTrend(
        label=trend_label(trend),
        unit=trend.path.metric.unit,
        points=tuple(map(_point, trend.points(last=_MOST_RUNS))),
        note=trend.note,
    )


def _point(point: Point) -> TrendPoint:
    run = point.result.run
    commit = f" {run.commit.short}" if run.commit else ""
    return TrendPoint(
        title=f"{run.at:%Y-%m-%d}{commit}",
        value=None if point.samples is None else point.samples.mean,
        is_change=point.is_change,
        because=", ".join(point.because),
    )
