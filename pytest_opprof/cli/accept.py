"""``opprof accept``: let a rise pass, with a reason that reviewers see."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

from pytest_opprof.cli.project import Project
from pytest_opprof.errors import UsageError

HELP = "let a rise or a missing test pass, and say why"
EXAMPLE = 'opprof accept --cause 1 --reason "the caller changes its input"'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.description = "Name a test, or all tests that fail for one cause, or all that failed."
    parser.add_argument(
        "test", nargs="?", metavar="TEST", help="the test's node id, or a part of it that no other has"
    )
    parser.add_argument("metric", nargs="?", metavar="METRIC", help="one gate that failed (default: all)")
    parser.add_argument("--cause", type=int, metavar="N", help="accept all tests of the summary's cause N")
    parser.add_argument("--all", action="store_true", help="accept all tests that failed")
    parser.add_argument("--reason", required=True, metavar="TEXT", help="the reason, for reviewers")
    parser.add_argument(
        "--comparison",
        type=Path,
        metavar="FILE",
        help="a comparison's JSON file (default: the last comparison)",
    )


def run(args: argparse.Namespace) -> int:
    """Add to the project's accepted values, and say which file to commit."""
    from pytest_opprof.baselines.accepted import accept
    from pytest_opprof.compare.accepting import accepted_of, failed_by, left_over
    from pytest_opprof.compare.document import read_comparison
    from pytest_opprof.compare.last import last_comparison, refuse_stale
    from pytest_opprof.history.trend import find_test
    from pytest_opprof.report.text import escaped
    from pytest_opprof.results.files import shown

    if sum((args.test is not None, args.cause is not None, args.all)) != 1:
        raise UsageError("opprof accept takes one of these: TEST, --cause N, or --all")
    folder = Project.here().folder
    if args.comparison:
        comparison = read_comparison(args.comparison)
    else:
        comparison = last_comparison(folder)
        refuse_stale(comparison, folder.parent)
    if args.test is None:
        tests = failed_by(comparison, cause=args.cause)
    else:
        compared = [test.node_id for test in comparison.tests]
        tests = [find_test(args.test, compared, where=str(args.comparison or "the last comparison"))]
    created = datetime.now(UTC).replace(microsecond=0)
    entries = [
        entry
        for test in tests
        for entry in accepted_of(comparison, test, metric=args.metric, reason=args.reason, created=created)
    ]
    path = accept(folder, entries)
    what = tests[0] if len(tests) == 1 else f"{len(tests)} tests"
    print(escaped(f"Accepted for {what} until the next baseline. Commit {shown(path)} with the change"))
    for entry in entries:
        print(escaped(f"    {entry.words}" if len(tests) == 1 else f"    {entry.test}: {entry.words}"))
    for sentence in left_over(comparison, tests):
        print(escaped(sentence))
    return 0
