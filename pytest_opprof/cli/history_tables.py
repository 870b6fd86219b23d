"""``opprof history --tables``: the histories of many repositories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_opprof.cli.output import print_lines, width
from pytest_opprof.errors import UsageError
from pytest_opprof.metrics import Family, MetricPath, parse_path
from pytest_opprof.results.samples import Samples
from pytest_opprof.wording import counted

if TYPE_CHECKING:
    import argparse

    from pytest_opprof.history.parquet_query import HistoryTables
    from pytest_opprof.history.trend import Trend


def run_on_tables(args: argparse.Namespace) -> list[Trend]:
    """Import runs, compact the tables or print a metric's changes; return the named test's trends, if any."""
    if args.sources:
        print("\n".join(_imported(args.tables, args.sources, repo=args.repo)))
    elif args.repo:
        raise UsageError("--repo is only for --import. To choose a repository: --where \"repo = 'NAME'\"")
    elif args.compact:
        from pytest_opprof.history.parquet import compact

        months, joined = compact(args.tables)
        print(f"{counted(joined, 'file')} joined, {counted(months, 'month')} of repositories")
    elif args.test is None:
        raise UsageError("name a test, a metric or both: opprof history --tables ADDRESS TEST METRIC")
    if args.test is None:
        return []
    from pytest_opprof.history.parquet_query import HistoryTables

    path = _path_alone(args)
    tables = HistoryTables(args.tables, where=args.where)
    if path is None:
        return _trends(tables, args.test, args.metric, name=args.name)
    _print_changes(tables, path, args)
    return []


def _imported(root: str, sources: list[Path], *, repo: str | None) -> list[str]:
    from pytest_opprof.baselines.git import Git
    from pytest_opprof.history.importing import find_for_tables
    from pytest_opprof.history.parquet import add_runs, run_ids
    from pytest_opprof.history.store import name_of
    from pytest_opprof.parquet_files import checked_name

    repo = checked_name(repo, what="repository") if repo else name_of(Path.cwd())
    told, known, notes = find_for_tables(sources, known=run_ids(root, repo), git=Git(Path.cwd()))
    added = add_runs(root, repo, told)
    without = len(told) - added
    return [
        *notes,
        f"{counted(added, 'run')} of {repo} imported, {known} there already, {without} with no usable test",
    ]


def _path_alone(args: argparse.Namespace) -> MetricPath | None:
    """The metric of all tests to show, if the only argument names a metric."""
    if args.metric is not None:
        return None
    try:
        return parse_path(args.test, where="METRIC")
    except UsageError:
        return None


def _trends(tables: HistoryTables, test: str, metric: str | None, *, name: str | None) -> list[Trend]:
    from pytest_opprof.history.trend import find_test, trend_of, wanted_metrics

    known = tables.tests()
    node_id = find_test(test, sorted({node_id for _, node_id in known}))
    repos = [repo for repo, each in known if each == node_id]
    if len(repos) > 1:
        raise UsageError(f"{node_id} is in {', '.join(repos)}. Choose one: --where \"repo = '{repos[0]}'\"")
    results = tables.results(repos[0], node_id, name=name)
    if not results:
        raise UsageError(f"no run of {node_id} matches --where or --name")
    trends = []
    for path in wanted_metrics(metric, results, has_times_of_ops=True):
        samples = None
        if path.op is not None and path.metric.family is not Family.EXACT:
            times = tables.times(repos[0], node_id, path)
            found = ((times.get(result.run.run_id), result.counts.steps) for result in results)
            samples = [None if ns is None else Samples.constant(ns, steps=steps) for ns, steps in found]
        trends.append(trend_of(node_id, path, results, samples=samples))
    return trends


def _print_changes(tables: HistoryTables, path: MetricPath, args: argparse.Namespace) -> None:
    from pytest_opprof.history.lines import change_lines, changes_to_csv, changes_to_json

    changes = tables.changes(path, name=args.name)
    if args.json:
        print(json.dumps(changes_to_json(changes, path), indent=1))
    elif args.csv:
        print(changes_to_csv(changes, path), end="")
    else:
        print_lines(change_lines(changes, path, runs=tables.runs, width=width()))
