"""``opprof report``: write a comparison in another format, such as for a pull request or a CI server."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_opprof.cli.project import Project, add_gate, add_store, history_log
from pytest_opprof.errors import UsageError

if TYPE_CHECKING:
    from pytest_opprof.report.summary import Judged

HELP = "write a comparison as Markdown, JUnit XML and others"
EXAMPLE = "opprof report comparison.json --format html -o report.html"

_PRINTED = Path("-")
_PAGE = "html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "comparison",
        nargs="?",
        type=Path,
        metavar="COMPARISON",
        help="the JSON file of `opprof compare -o`, `opprof ab -o` or `--opprof-report=json:PATH`; for html "
        "also that of `opprof fleet show --json`",
    )
    parser.add_argument(
        "--base", metavar="RUN", help="with --head: compare these two, in place of COMPARISON"
    )
    parser.add_argument(
        "--head",
        metavar="RUN",
        help="a run's file, a baseline's name, or NAME@COMMIT; alone: check its limits",
    )
    add_gate(parser, needs="with --head: ")
    parser.add_argument(
        "--format",
        default="markdown",
        metavar="FORMAT",
        help="html, markdown (a comment), summary (of a job), gitlab, junit, annotations, openmetrics or "
        "badge; default: %(default)s",
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=_PRINTED, metavar="FILE", help="default: -, which prints it"
    )
    parser.add_argument(
        "--history", action="store_true", help="with html: draw how the tests did in the store's history"
    )
    add_store(parser)


def run(args: argparse.Namespace) -> int:
    """Render, and write or print."""
    from pytest_opprof.cli.comparison import comparison_of
    from pytest_opprof.report.formats import renderer
    from pytest_opprof.results.files import write_bytes

    render = renderer(args.format, where="--format", folders=lambda: (Path.cwd(), Project.here().root))
    text = _fleet_page(args)
    if text is None:
        comparison = comparison_of(args)
        text = _page_with_history(comparison, args) if args.history else render(comparison)
    data = text.encode("utf-8")
    if args.output != _PRINTED:
        write_bytes(args.output, data)
    elif hasattr(sys.stdout, "buffer"):
        sys.stdout.buffer.write(data)  # a file's bytes: the terminal's encoding would change them
    else:
        sys.stdout.write(text)
    return 0


def _fleet_page(args: argparse.Namespace) -> str | None:
    """The page of a file of `opprof fleet`; None if no such file was given."""
    from pytest_opprof.report.html.fleet import fleet_page
    from pytest_opprof.results.fleet import read_fleet

    of_file = args.comparison is not None and args.format == _PAGE and not args.history
    fleet = read_fleet(args.comparison) if of_file else None
    return None if fleet is None else fleet_page(fleet)


def _page_with_history(comparison: Judged, args: argparse.Namespace) -> str:
    from pytest_opprof.history.lines import page_trends
    from pytest_opprof.history.reader import HistoryReader
    from pytest_opprof.report.html.page import html_report
    from pytest_opprof.report.summary import Summary

    if args.format != _PAGE:
        raise UsageError(f"--history is drawn on a page, with --format {_PAGE}")
    reader = HistoryReader(history_log(args.store))
    trends = page_trends(reader, [test.node_id for test in Summary.of(comparison).tests])
    return html_report(comparison, history=trends)
