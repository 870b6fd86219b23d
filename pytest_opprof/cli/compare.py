"""``opprof compare``: two runs side by side, and whether a gate fails."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from pytest_opprof.cli.comparison import compare_now
from pytest_opprof.cli.output import print_lines, width
from pytest_opprof.cli.project import Project, add_gate, add_store

HELP = "compare two runs; exits with 1 if a gate fails"
EXAMPLE = "opprof compare main run.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("base", metavar="BASE", help="a run's file, a baseline's name, or NAME@COMMIT")
    parser.add_argument("head", metavar="HEAD", help="the run to judge, given in the same way")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write the comparison to a JSON file"
    )
    parser.add_argument("--fail-on", metavar="LIST", help="verdicts that fail (none: nothing does)")
    add_gate(parser)
    parser.add_argument(
        "--rename",
        action="append",
        default=[],
        metavar="OLD->NEW",
        help="a test, class, file or folder of BASE that has another name in HEAD",
    )
    add_store(parser)
    parser.add_argument("-v", "--verbose", action="count", default=0, help="also tests that passed")
    parser.add_argument(
        "-q",
        "--quiet",
        action="count",
        default=0,
        help="what failed or changed, by name; -qq: the last line alone",
    )


def run(args: argparse.Namespace) -> int:
    """Compare, print, write."""
    from pytest_opprof.compare.document import write_comparison
    from pytest_opprof.report.terminal import comparison_lines

    fail_on = Project.here().fail_on(args.fail_on)
    comparison = compare_now(args.base, args.head, store=args.store, gates=args.gate, renames=args.rename)
    if args.output is not None:
        write_comparison(args.output, comparison)
    verbosity = args.verbose - args.quiet
    accept = show = None
    if args.output:
        file = shlex.quote(str(args.output))
        accept, show = f"opprof accept --comparison {file}", f"opprof show {file}"
    print_lines(comparison_lines(comparison, width=width(), verbosity=verbosity, accept=accept, show=show))
    return int(any(fail_on.fails(test.verdict) for test in comparison.tests))
