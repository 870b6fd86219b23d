"""``opprof accept``: let a rise pass, with a reason that reviewers see."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tell the command line of this command."""
    parser = subparsers.add_parser("accept", help="let a rise or a missing test pass, and say why")
    parser.add_argument("test", metavar="TEST", help="the test's node id, as its failure names it")
    parser.add_argument("metric", nargs="?", metavar="METRIC", help="one gate that failed (default: all)")
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why, for who reviews it")
    parser.add_argument(
        "--comparison", type=Path, metavar="FILE", help="a comparison's document (default: the last one's)"
    )


def run(args: argparse.Namespace) -> int:
    """Write the project's list of accepted values, and say what may be committed.

    Raises:
        UsageError: The named test or metric neither regressed nor is missing, or no reason was given.
        OpprofError: a document cannot be read or written; what was accepted before is as it was.
    """
    from pytest_opprof.baselines.accepted import accept  # noqa: PLC0415
    from pytest_opprof.baselines.folder import project_folder  # noqa: PLC0415
    from pytest_opprof.compare.accepting import accepted_of  # noqa: PLC0415
    from pytest_opprof.compare.document import read_comparison  # noqa: PLC0415
    from pytest_opprof.compare.last import last_comparison  # noqa: PLC0415
    from pytest_opprof.report.text import escaped  # noqa: PLC0415
    from pytest_opprof.results.files import shown  # noqa: PLC0415

    folder = project_folder(Path.cwd())
    comparison = read_comparison(args.comparison) if args.comparison else last_comparison(folder)
    entries = accepted_of(
        comparison,
        args.test,
        metric=args.metric,
        reason=args.reason,
        created=datetime.now(UTC).replace(microsecond=0),
    )
    path = accept(folder, entries)
    print(
        escaped(f"{shown(path)}: accepted of {args.test}, until the next baseline: commit it with the change")
    )
    for entry in entries:
        print(escaped(f"    {entry.words}"))
    return 0
