"""``opprof fleet``: jobs of many ranks, from a trace per rank."""

from __future__ import annotations

import argparse
import csv
import json
import logging
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_opprof.baselines.keys import FLEET
from pytest_opprof.cli.actions import add_action
from pytest_opprof.cli.output import print_lines, width
from pytest_opprof.errors import UsageError
from pytest_opprof.report.text import Line, Style, escaped
from pytest_opprof.units import check_between
from pytest_opprof.wording import counted

if TYPE_CHECKING:
    from pytest_opprof.results.fleet import Fleet

HELP = "find stragglers and regressions in jobs of many ranks"
EXAMPLE = "opprof fleet show night"

_MOST_WORKERS = 1_000
_TABLES = f".opprof/{FLEET}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", title="actions")
    what = "read a trace or a run per rank into tables; exits with 1 if ranks are missing or failed"
    parser = add_action(actions, "ingest", _ingest, what, "traces --job night")
    parser.description = (
        "Traces and tables are on disk or at any address of fsspec, such as s3://bucket/traces."
    )
    parser.add_argument("source", metavar="SOURCE", help="a folder, pattern or address of traces or runs")
    parser.add_argument(
        "-o", "--output", default=_TABLES, metavar="TABLES", help="where tables go (default: %(default)s)"
    )
    parser.add_argument("--job", required=True, metavar="NAME", help="the job's name")
    parser.add_argument(
        "--window", default="0", metavar="NAME", help="the night or cycle (default: %(default)s)"
    )
    parser.add_argument("--expect", type=int, metavar="N", help="how many ranks there should be")
    parser.add_argument(
        "--engine", default="local", metavar="ENGINE", help="local, or dask:tcp://HOST:PORT (default: local)"
    )
    parser.add_argument(
        "--workers", type=int, metavar="N", help="processes of the local engine (default: one per core)"
    )
    what = "print a job's missing ranks, stragglers and device time; exits with 1 if it is inconclusive"
    parser = add_action(actions, "show", _show, what, "night --expect 64")
    parser.add_argument("job", metavar="NAME", help="the job")
    parser.add_argument("--window", metavar="NAME", help="the window (default: the last by name)")
    parser.add_argument("--expect", type=int, metavar="N", help="how many ranks there should be")
    parser.add_argument("--json", action="store_true", help="print JSON, with every rank")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with a heat map of the ranks")
    _add_tables(parser)
    parser = add_action(
        actions, "diff", _diff, "compare two jobs op by op; exits with 1 if HEAD regressed", "monday tuesday"
    )
    parser.add_argument("base", metavar="BASE", help="the earlier job")
    parser.add_argument("head", metavar="HEAD", help="the later job")
    parser.add_argument(
        "--fail-on",
        default="exact",
        metavar="GATES",
        help="exact (calls), time (needs four windows of each job), both with a comma between, or none "
        "(default: %(default)s)",
    )
    parser.add_argument("--rows", type=int, default=20, metavar="N", help="rows of the table, -1 for all")
    parser.add_argument("--json", action="store_true", help="print JSON, with every op that changed")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with the ops that changed")
    _add_tables(parser)
    what = "query the tables of jobs: ranks, ops, collectives, steps"
    parser = add_action(actions, "sql", _sql, what, '"SELECT count(*) FROM ranks"')
    parser.add_argument("query", metavar="QUERY", help="a SELECT of DuckDB")
    parser.add_argument("--job", action="append", metavar="NAME", help="only these jobs; default: all")
    _add_tables(parser)


def _add_tables(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tables", default=_TABLES, metavar="TABLES", help="where the tables are (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Run the chosen action."""
    return int(args.act(args))


def _ingest(args: argparse.Namespace) -> int:
    from pytest_opprof.fleet.engine import engine
    from pytest_opprof.fleet.ingest import ingest
    from pytest_opprof.fleet.manifest import Status, missing_ranks
    from pytest_opprof.fleet.summary import file_problems, missing_problem

    check_between("--workers", args.workers, 1, _MOST_WORKERS)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # failures are reported rank by rank
    with engine(args.engine, workers=args.workers) as on:
        files = ingest(
            args.source,
            args.output,
            job=args.job,
            window=args.window,
            executor=on.executor,
            progress=partial(_draw, began=time.monotonic()),
            is_alive=on.is_alive,
        )
    good = sum(one.status is Status.OK for one in files)
    print_lines([f"{args.output}: {counted(good, 'rank')} of {counted(len(files), 'file')}, with {on.title}"])
    problems = [*file_problems(files), *missing_problem(missing_ranks(files, expected=args.expect))]
    print_lines(Line(escaped(problem), Style.BAD) for problem in problems)
    return int(bool(problems))


def _draw(done: int, total: int, *, began: float) -> None:
    """Draw a line on a terminal: how many files are done, and the time left."""
    if not sys.stderr.isatty():
        return
    filled = 30 * done // max(total, 1)
    left = (time.monotonic() - began) / done * (total - done) if done else 0
    told = f", {left:.0f} s left" if done and done < total else ""
    end = "\n" if done == total else ""
    print(f"\r[{'#' * filled:30}] {done} of {total} traces{told}    ", end=end, file=sys.stderr, flush=True)


def _show(args: argparse.Namespace) -> int:
    from pytest_opprof.fleet.summary import summarize
    from pytest_opprof.fleet.tables import windows_of

    windows = {one.window: one for one in windows_of(args.tables, args.job)}
    name = args.window or max(windows)
    if name not in windows:
        raise UsageError(f"{args.job} has no window {name}: there are {', '.join(windows)}")
    summary = summarize(windows[name], expected=args.expect)
    _tell(summary, args, rows=0)
    return int(bool(summary.problems))


def _diff(args: argparse.Namespace) -> int:
    from pytest_opprof.fleet.difference import compare, parse_gates
    from pytest_opprof.fleet.tables import windows_of

    gates = parse_gates(args.fail_on)
    base, head = (windows_of(args.tables, job) for job in (args.base, args.head))
    found = compare(base, head, gates=gates)
    _tell(found, args, rows=args.rows)
    return int(bool(found.problems or found.failures))


def _tell(found: Fleet, args: argparse.Namespace, *, rows: int) -> None:
    from pytest_opprof.report.fleet import fleet_lines
    from pytest_opprof.report.html.fleet import fleet_page
    from pytest_opprof.results.files import write_bytes
    from pytest_opprof.results.fleet import fleet_to_document

    if args.html:
        write_bytes(args.html, fleet_page(found).encode())
    if args.json:
        print(json.dumps(fleet_to_document(found)))
    else:
        print_lines(fleet_lines(found, rows=rows, width=width()))


def _sql(args: argparse.Namespace) -> int:
    from pytest_opprof.fleet.database import Database
    from pytest_opprof.fleet.tables import jobs_of, windows_of

    jobs = args.job or jobs_of(args.tables)
    names, rows = Database([one for job in jobs for one in windows_of(args.tables, job)]).rows(args.query)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return 0
