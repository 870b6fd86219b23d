"""``opprof recover``: what processes that died left behind."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_opprof.cli.output import print_lines
from pytest_opprof.errors import UsageError


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tell the command line of this command."""
    parser = subparsers.add_parser(
        "recover", help="say what processes that died were in, and write the traces of what they recorded"
    )
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        metavar="DIR",
        help="where session files are; unless given, where this process would have its own",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path(".opprof", "crashes"),
        metavar="DIR",
        help="the folder for the traces; default: %(default)s",
    )
    parser.add_argument("--remove", action="store_true", help="remove the session files that were read")


def run(args: argparse.Namespace) -> int:
    """Tell of each dead process that was in a test, or recorded something.

    Raises:
        OpprofError: a trace cannot be written, or there is no such folder.
    """
    from pytest_opprof.recovery.death_report import told  # noqa: PLC0415
    from pytest_opprof.recovery.deaths import death_of, write_trace  # noqa: PLC0415
    from pytest_opprof.recovery.sessions import left_sessions, remove  # noqa: PLC0415
    from pytest_opprof.report.text import escaped  # noqa: PLC0415

    if args.folder is not None and not args.folder.is_dir():
        raise UsageError(f"{args.folder}: no such folder")
    files = list(left_sessions(None if args.folder is None else [args.folder]))
    deaths = [death for death in map(death_of, files) if death.note or death.recording]
    for death in deaths:
        trace = write_trace(death, args.output)
        print_lines(map(escaped, told(death, trace=trace)))
    if not deaths:
        print_lines(["no process of yours died in a test or while it recorded"])
    if args.remove:
        for file in files:
            remove(file)
    return 0
