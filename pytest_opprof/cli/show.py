"""``opprof show``: print a run, a comparison or a file of `opprof fleet` as tables."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pytest_opprof.cli.output import print_lines, width
from pytest_opprof.cli.project import Project, add_store, store_of
from pytest_opprof.errors import UsageError
from pytest_opprof.metrics import matches
from pytest_opprof.wording import counted

if TYPE_CHECKING:
    from pytest_opprof.compare.comparison import TestComparison
    from pytest_opprof.compare.timing.comparison import TestTimes
    from pytest_opprof.report.summary import Judged
    from pytest_opprof.report.text import Line
    from pytest_opprof.results.run import Run, TestResult

_Test = TypeVar("_Test", "TestResult", "TestComparison", "TestTimes")

HELP = "print the op tables of a run, or a comparison"
EXAMPLE = "opprof show main --test test_step --rows 20"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "run",
        nargs="?",
        metavar="RUN",
        help="a file of a run, a comparison or a fleet, a baseline, or NAME@COMMIT; without it, the last "
        "comparison",
    )
    add_table_arguments(parser)
    add_store(parser)


def add_table_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of op tables, for `run_lines`."""
    parser.add_argument("--test", metavar="PATTERN", help="only tests whose id contains or matches this")
    parser.add_argument("--sort", default="self_cpu_time_total", metavar="KEY", help="default: %(default)s")
    parser.add_argument("--rows", type=int, default=10, metavar="N", help="rows of a table, -1 for all")
    parser.add_argument("--columns", metavar="LIST", help="titles of columns with commas between them")


def run(args: argparse.Namespace) -> int:
    """Print the tables."""
    from pytest_opprof.baselines.resolve import find_run, is_path
    from pytest_opprof.compare.last import last_comparison
    from pytest_opprof.compare.timing.document import read_judged
    from pytest_opprof.report.causes import ACCEPT
    from pytest_opprof.report.fleet import fleet_lines
    from pytest_opprof.results.files import parse, read_bytes
    from pytest_opprof.results.fleet import read_fleet
    from pytest_opprof.results.schema import Contract, contract_of

    if args.run is None:
        _print_comparison(last_comparison(Project.here().folder), args, accept=ACCEPT)
        return 0
    path = Path(args.run)
    if is_path(args.run):
        document = parse(read_bytes(path), where=args.run)
        if contract_of(document, where=args.run) is Contract.COMPARISON:
            accept = f"{ACCEPT} --comparison {shlex.quote(args.run)}"
            _print_comparison(read_judged(path), args, accept=accept)
            return 0
        if fleet := read_fleet(path):
            print_lines(fleet_lines(fleet, rows=args.rows, width=width()))
            return 0
    found = find_run(args.run, store=store_of(args.store))
    print_lines(run_lines(found, args))
    return 0


def _print_comparison(judged: Judged, args: argparse.Namespace, *, accept: str) -> None:
    """Print a comparison whole, or what it says of the tests that `--test` selects."""
    from pytest_opprof.compare.comparison import Comparison
    from pytest_opprof.report.ab import ab_lines, ab_test_lines
    from pytest_opprof.report.terminal import comparison_lines, section_lines

    if isinstance(judged, Comparison):
        if args.test is None:
            print_lines(comparison_lines(judged, width=width(), accept=accept, show=""))
            return
        tests = _tests_like(judged.tests, args)
        print_lines(section_lines(tests, judged, width=width(), accept=accept, show="")[1:])
    elif args.test is None:
        print_lines(ab_lines(judged, width=width()))
    else:
        print_lines(ab_test_lines(_tests_like(judged.tests, args), judged, width=width()))


def _tests_like(tests: Sequence[_Test], args: argparse.Namespace) -> list[_Test]:
    """The tests that `--test` selects; UsageError if there are none."""
    found = [test for test in tests if args.test is None or is_like(test.node_id, args.test)]
    if args.test and not found:
        searched = args.run or "the last comparison"
        raise UsageError(f"{searched} has no test like {args.test!r} ({counted(len(tests), 'test')})")
    return found


def run_lines(found: Run, args: argparse.Namespace) -> Iterator[Line | str]:
    """The op tables of a run, by the options of `add_table_arguments`."""
    from pytest_opprof.report.op_table import op_table
    from pytest_opprof.report.terminal import rank_lines, result_title, run_title

    columns = args.columns.split(",") if args.columns else None
    tests = _tests_like(found.tests, args)
    yield run_title(found)
    for test in tests:
        yield ""
        yield result_title(test)
        if test.ops:
            yield from op_table(test, sort_by=args.sort, rows=args.rows, columns=columns)
        yield from rank_lines(test, width=width())


def is_like(node_id: str, pattern: str) -> bool:
    """Whether a test's id contains or matches a pattern."""
    return pattern in node_id or matches(pattern, node_id)
