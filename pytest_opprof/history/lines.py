"""Trends as text (a table with a line for each run, JSON or CSV), and as data for a report's page."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pytest_opprof.history.parquet_query import Change
from pytest_opprof.history.reader import HistoryReader
from pytest_opprof.history.record import RunHead
from pytest_opprof.history.trend import Point, Trend, trend_of, wanted_metrics
from pytest_opprof.metrics import MetricPath
from pytest_opprof.report.text import Line, Style, escaped, table, wrapped
from pytest_opprof.results.members import time_to_document
from pytest_opprof.results.samples import range_text
from pytest_opprof.units import format_change
from pytest_opprof.wording import counted

_BARS = "▁▂▃▄▅▆▇█"
_MARK = "<-"
_MOST_RUNS_OF_A_PAGE = 200  # of each test, the latest: a page of many tests has no room for more
_CSV = (
    *("test", "metric", "unit", "run_id", "created", "committed", "commit", "dirty", "branch", "name"),
    *("environment", "value", "low", "high", "is_change"),
)

_CSV_OF_CHANGES = (
    *("repository", "test", "metric", "unit", "run_id", "created", "committed", "commit"),
    *("before", "after", "changed_with_it"),
)


def trend_lines(trends: Sequence[Trend], *, last: int, width: int) -> Iterator[Line | str]:
    """A table of one test's trends, side by side, over the `last` runs or, with -1, all runs."""
    runs = len(trends[0])
    shown = runs if last < 0 else min(last, runs)
    yield Line(escaped(trends[0].node_id), Style.BOLD)
    for trend in trends:
        yield from _summary(trend, width=width)
    yield ""
    titles = [title for trend in trends for title in (trend_label(trend), "change")]
    rows = [_row(trends, at) for at in range(runs - shown, runs)]
    headers = ["date", "commit", "name", *titles, ""]
    lines = table(headers, rows, width=width, names=2, sentences=len(headers) - 1, right=titles)
    marked = [False, *(bool(row[-1]) for row in rows)]
    for line, is_change in zip(lines, marked, strict=True):
        yield Line(line, Style.WARN) if is_change else line
    if shown < runs:
        yield Line(f"{runs - shown} earlier runs not shown (--last -1 shows all)", Style.DIM)


def change_lines(
    changes: Sequence[Change], path: MetricPath, *, runs: int, width: int
) -> Iterator[Line | str]:
    """The changes of one metric in many tests, oldest first, found in so many runs."""
    tests = len({(change.repo, change.node_id) for change in changes})
    found = f"{counted(len(changes), 'change')} in {counted(tests, 'test')}" if changes else "no change"
    yield Line(escaped(f"{path} in each step: {found}, {counted(runs, 'run')}"), Style.BOLD)
    if not changes:
        return
    groups = itertools.groupby(changes, key=lambda change: (change.repo, change.run, change.because))
    for (repo, run, because), group in groups:
        yield ""
        yield "  ".join(
            filter(None, (f"{run.at:%Y-%m-%d %H:%M}", _commit(run), escaped(run.name or ""), escaped(repo)))
        )
        told = f"changed with it: {', '.join(because)}" if because else ""
        # Not cut to the width, because it is the answer.
        yield from (Line(line, Style.WARN) for line in wrapped(told, width=width, first="  "))
        changed = [
            (" -> ".join(range_text(each, unit=path.metric.unit) for each in (one.before, one.after)), one)
            for one in group
        ]
        longest = max(len(figures) for figures, _ in changed)
        yield from (f"  {figures:>{longest}}  {escaped(one.node_id)}" for figures, one in changed)


def changes_to_json(changes: Sequence[Change], path: MetricPath) -> list[dict[str, Any]]:
    """The changes for JSON and CSV: one object each."""
    return [
        {
            "repository": change.repo,
            "test": change.node_id,
            "metric": str(path),
            "unit": str(path.metric.unit),
            **_run_cells(change.run),
            "before": change.before.mean,
            "after": change.after.mean,
            "changed_with_it": ", ".join(change.because),
        }
        for change in changes
    ]


def changes_to_csv(changes: Sequence[Change], path: MetricPath) -> str:
    """The changes as CSV: one line each, with a header."""
    return _csv(_CSV_OF_CHANGES, changes_to_json(changes, path))


def to_json(trends: Sequence[Trend]) -> list[dict[str, Any]]:
    """The trends for JSON: one object for each metric, with its points."""
    return [
        {
            "test": trend.node_id,
            "metric": str(trend.path),
            "unit": str(trend.path.metric.unit),
            "points": [_cells(point) for point in trend.points()],
            "note": trend.note,
        }
        for trend in trends
    ]


def to_csv(trends: Sequence[Trend]) -> str:
    """The trends as CSV: one line for each metric and run, with a header."""
    return _csv(_CSV, (trend | point for trend in to_json(trends) for point in trend["points"]))


def page_trends(reader: HistoryReader, node_ids: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """For a report's page, the trends of each known test's ops per step and of their time."""
    found = ((node_id, reader.results(node_id)) for node_id in node_ids)
    return {
        node_id: [
            {
                "label": trend_label(trend),
                "unit": path.metric.unit,
                "points": [_page_point(point) for point in trend.points(last=_MOST_RUNS_OF_A_PAGE)],
                "note": trend.note,
            }
            for path in wanted_metrics(None, results)
            for trend in [trend_of(node_id, path, results)]
        ]
        for node_id, results in found
        if results
    }


def _page_point(point: Point) -> dict[str, Any]:
    run = point.result.run
    return {
        "title": f"{run.at:%Y-%m-%d} {_commit(run)}".rstrip(),
        "value": None if point.samples is None else point.samples.mean,
        "is_change": point.is_change,
        "because": ", ".join(point.because),
    }


def _csv(fields: Sequence[str], rows: Iterable[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fields, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def sparkline(values: Sequence[float | None], *, width: int) -> str:
    """Values as a line of bars; if they do not fit, each bar is the last of several."""
    if len(values) > width:
        values = [values[(at + 1) * len(values) // width - 1] for at in range(width)]
    known = [value for value in values if value is not None]
    low, high = min(known, default=0), max(known, default=0)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0
    return "".join(" " if value is None else _BARS[round((value - low) * scale)] for value in values)


def _summary(trend: Trend, *, width: int) -> Iterator[Line | str]:
    found = f"{counted(len(trend), 'run')}, {counted(len(trend.changes), 'change')}"
    yield escaped(f"  {trend.path} in each step: {found}")
    means = [None if samples is None else samples.mean for samples in trend.samples]
    bars = sparkline(means, width=width - 4)
    yield f"    {bars}".rstrip()
    if trend.note:
        yield Line(f"    {trend.note}", Style.DIM)


def _row(trends: Sequence[Trend], at: int) -> list[str]:
    run, _ = trends[0].results.head_of(at)
    cells = [f"{run.at:%Y-%m-%d %H:%M}", _commit(run), run.name or ""]
    told: dict[str, None] = {}
    for trend in trends:
        point = trend.point(at)
        unit = trend.path.metric.unit
        cells += ["?" if point.samples is None else range_text(point.samples, unit=unit), _change(trend, at)]
        if point.is_change:
            told |= dict.fromkeys([f"{_MARK} {trend_label(trend)} changed", *point.because])
    return [*cells, ", ".join(told)]


def trend_label(trend: Trend) -> str:
    """A column's title: a total's label, or an op's metric as users write it."""
    return trend.path.metric.label if trend.path.op is None else str(trend.path)


def _change(trend: Trend, at: int) -> str:
    """The change since the last run with a value; empty if there is none."""
    now = trend.samples[at]
    if now is None:  # nothing to search for, and in a long history the search takes long
        return ""
    earlier = (trend.samples[before] for before in range(at - 1, -1, -1))
    before = next((samples for samples in earlier if samples is not None), None)
    # Runs may differ in their steps, as a save's and another run's do.
    if before is None or (now.low, now.high, now.mean) == (before.low, before.high, before.mean):
        return ""
    return format_change(round(now.mean - before.mean), unit=trend.path.metric.unit)


def _commit(run: RunHead) -> str:
    return run.commit.short if run.commit else ""


def _run_cells(run: RunHead) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "created": time_to_document(run.created),
        "committed": None if run.committed is None else time_to_document(run.committed),
        "commit": None if run.commit is None else run.commit.id,
    }


def _cells(point: Point) -> dict[str, Any]:
    run, samples = point.result.run, point.samples
    return {
        **_run_cells(run),
        "dirty": run.commit is not None and run.commit.dirty,
        "branch": None if run.commit is None else run.commit.branch,
        "name": run.name,
        "environment": point.result.environment.digest,
        "value": None if samples is None else samples.mean,
        "low": None if samples is None else samples.low,
        "high": None if samples is None else samples.high,
        "is_change": point.is_change,
    }
