"""``opprof history``: a test's metrics from run to run, and the runs that changed them."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_opprof.cli.output import print_lines, width
from pytest_opprof.cli.project import Project, add_store, history_log
from pytest_opprof.errors import UsageError

if TYPE_CHECKING:
    from pytest_opprof.history.log import HistoryLog
    from pytest_opprof.history.parquet_query import HistoryTables
    from pytest_opprof.history.trend import Trend
    from pytest_opprof.metrics import MetricPath
    from pytest_opprof.report.text import Line

HELP = "print the trend of a test, with the runs that changed it"
EXAMPLE = "opprof history test_step aten::clone.count"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("test", nargs="?", metavar="TEST", help="a test's id, or a unique part of it")
    parser.add_argument(
        "metric",
        nargs="?",
        metavar="METRIC",
        help="such as aten::clone.count or flops.total (default: number of ops and time)",
    )
    parser.add_argument("--name", metavar="NAME", help="only runs that were saved as NAME")
    parser.add_argument("--last", type=int, default=20, metavar="N", help="print the last N runs, -1 for all")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, with all runs")
    form.add_argument("--csv", action="store_true", help="print CSV, with all runs")
    work = parser.add_mutually_exclusive_group()
    work.add_argument(
        "--import",
        dest="sources",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="add older runs first: run files, or folders of them such as .opprof",
    )
    work.add_argument("--compact", action="store_true", help="first join the files of CI jobs")
    parser.add_argument(
        "--tables",
        metavar="ADDRESS",
        help="ask, or add to, Parquet tables of many repositories: a folder, or an address such as "
        "s3://bucket/history",
    )
    parser.add_argument(
        "--where",
        metavar="CONDITION",
        help="only runs of the tables that meet it, such as \"torch >= '2.14' AND repo LIKE 'encoder%%'\"",
    )
    parser.add_argument("--repo", metavar="NAME", help="the repository's name in the tables, for --import")
    add_store(parser)


def run(args: argparse.Namespace) -> int:
    """Import runs or compact the history, then print the trend of a test if one is named."""
    if args.tables is not None:
        if trends := _of_tables(args):
            _print(trends, args)
        return 0
    if args.where or args.repo:
        option = "--where" if args.where else "--repo"
        raise UsageError(f"{option} needs tables: name them with --tables ADDRESS")
    log = history_log(args.store)
    if args.sources:
        print_lines(_imported(log, args.sources))
    elif args.compact:
        print_lines(_compacted(log))
    elif args.test is None:
        raise UsageError("name a test: opprof history TEST")
    if args.test is not None:
        trends, notes = trends_of(log, args.test, metric=args.metric, name=args.name)
        for note in notes:
            print(f"opprof: {note}", file=sys.stderr)
        _print(trends, args)
    return 0


def _compacted(log: HistoryLog) -> Iterator[Line | str]:
    from pytest_opprof.report.text import escaped
    from pytest_opprof.results.files import shown

    done = log.compact()
    yield f"{done.runs} runs in {len(log.segments()) - len(done.kept)} files"
    for path in done.kept:
        yield escaped(f"{shown(path)}: left alone, because a part of it cannot be read")


def _imported(log: HistoryLog, sources: list[Path]) -> Iterator[Line | str]:
    from pytest_opprof.baselines.git import Git
    from pytest_opprof.history.importing import find_runs
    from pytest_opprof.history.reader import HistoryReader

    found = find_runs(sources, known=HistoryReader(log).run_ids(), git=Git(Path.cwd()))
    added = log.append(found.records)
    yield from found.notes
    without = len(found.records) - added
    yield f"{added} runs imported, {len(found.known)} were there already, {without} have no usable test"


def trends_of(
    log: HistoryLog, test: str, *, metric: str | None, name: str | None
) -> tuple[list[Trend], tuple[str, ...]]:
    """The trends of the test with this id, or part of an id, and notes on skipped parts of the history."""
    from pytest_opprof.history.reader import HistoryReader
    from pytest_opprof.history.trend import find_test, trend_of, wanted_metrics

    reader = HistoryReader(log)
    node_id = find_test(test, reader.tests())
    results = reader.results(node_id, name=name)
    if not results:
        what = "run in the history" if name is None else f"run that was saved as {name!r}"
        raise UsageError("; ".join([f"{node_id} has no {what}", *reader.notes]))
    return [trend_of(node_id, path, results) for path in wanted_metrics(metric, results)], reader.notes


def _print(trends: list[Trend], args: argparse.Namespace) -> None:
    from pytest_opprof.history.lines import to_csv, to_json, trend_lines

    if args.json:
        print(json.dumps(to_json(trends), indent=1))
    elif args.csv:
        print(to_csv(trends), end="")
    else:
        print_lines(trend_lines(trends, last=args.last, width=width()))


def _of_tables(args: argparse.Namespace) -> list[Trend]:
    """Import runs, compact the tables or print a metric's changes; return the named test's trends, if any."""
    if args.sources:
        print("\n".join(_imported_into_tables(args.tables, args.sources, repo=args.repo)))
    elif args.repo:
        raise UsageError("--repo is only for --import. To choose a repository: --where \"repo = 'NAME'\"")
    elif args.compact:
        from pytest_opprof.history.parquet import compact
        from pytest_opprof.wording import counted

        months, joined = compact(args.tables)
        print(f"{counted(joined, 'file')} joined, {counted(months, 'month')} of repositories")
    elif args.test is None:
        raise UsageError("name a test, a metric or both: opprof history --tables ADDRESS TEST METRIC")
    if args.test is None:
        return []
    from pytest_opprof.history.parquet_query import HistoryTables
    from pytest_opprof.metrics import parse_path

    tables = HistoryTables(args.tables, where=args.where)
    path: MetricPath | None = None
    with contextlib.suppress(UsageError):  # then the only argument names a test
        path = parse_path(args.test, where="METRIC") if args.metric is None else None
    if path is None:
        return _trends_of_tables(tables, args)
    _print_changes(tables, path, args)
    return []


def _imported_into_tables(root: str, sources: list[Path], *, repo: str | None) -> list[str]:
    from pytest_opprof.baselines.git import Git
    from pytest_opprof.history.importing import find_for_tables
    from pytest_opprof.history.parquet import add_runs, run_ids
    from pytest_opprof.history.store import name_of
    from pytest_opprof.parquet_files import checked_name
    from pytest_opprof.wording import counted

    repo = checked_name(repo, what="repository") if repo else name_of(Project.here().root)
    told, known, notes = find_for_tables(sources, known=run_ids(root, repo), git=Git(Path.cwd()))
    added = add_runs(root, repo, told)
    without = len(told) - added
    return [
        *notes,
        f"{counted(added, 'run')} of {repo} imported, {known} there already, {without} with no usable test",
    ]


def _trends_of_tables(tables: HistoryTables, args: argparse.Namespace) -> list[Trend]:
    from pytest_opprof.history.trend import find_test, trend_of, wanted_metrics
    from pytest_opprof.metrics import Family
    from pytest_opprof.results.samples import Samples

    known = tables.tests()
    node_id = find_test(args.test, sorted({node_id for _, node_id in known}))
    repos = [repo for repo, each in known if each == node_id]
    if len(repos) > 1:
        raise UsageError(f"{node_id} is in {', '.join(repos)}. Choose one: --where \"repo = '{repos[0]}'\"")
    results = tables.results(repos[0], node_id, name=args.name)
    if not results:
        raise UsageError(f"no run of {node_id} matches --where or --name")
    trends = []
    for path in wanted_metrics(args.metric, results, has_times_of_ops=True):
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
