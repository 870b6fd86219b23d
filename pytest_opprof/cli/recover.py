"""``opprof recover``: report what crashed processes left behind."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_opprof.cli.output import print_lines
from pytest_opprof.cli.project import Project
from pytest_opprof.errors import UsageError
from pytest_opprof.report.text import escaped
from pytest_opprof.wording import counted

if TYPE_CHECKING:
    from pytest_opprof.capture.session_files import SessionFile

HELP = "show where crashed processes died, and write the traces of what they recorded"
EXAMPLE = "opprof recover --remove"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        metavar="DIR",
        help="the folder of session files (default: that of this process)",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="the folder for the traces; default: the project's .opprof/crashes",
    )
    parser.add_argument(
        "--all", action="store_true", help="also take session files from outside this project's tests"
    )
    parser.add_argument("--remove", action="store_true", help="remove the session files that were read")


def run(args: argparse.Namespace) -> int:
    """Report each dead process that was in a test or recorded something."""
    from pytest_opprof.recovery.deaths import death_of, keep_trace, told, write_trace
    from pytest_opprof.recovery.sessions import left_sessions, remove
    from pytest_opprof.results.files import shown

    if args.folder is not None and not args.folder.is_dir():
        raise UsageError(f"{args.folder}: no such folder")
    files = list(left_sessions(None if args.folder is None else [args.folder]))
    project, found = Project.here(), False
    files = files if args.all else _without_others(files, root=project.root)
    for number, file in enumerate(files, start=1):
        if sys.stderr.isatty():
            print(f"\rreading {number} of {len(files)}\x1b[K", end="", file=sys.stderr, flush=True)
        death = death_of(file)
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        if death.note or death.recording:
            found = True
            trace = write_trace(death, args.output) if args.output else keep_trace(death, project.folder)
            print_lines(map(escaped, told(death, trace=trace and Path(shown(trace)))))
        if args.remove:
            remove(file)
    if not found:
        print_lines(["none of your processes died in a test or while recording"])
    return 0


def _without_others(files: Sequence[SessionFile], *, root: Path) -> list[SessionFile]:
    """The files of this project's tests, and others if a user at the terminal agrees.

    A recording outside of a test may be of any project. One of neither a test nor a recording says nothing.
    """
    from pytest_opprof.recovery.sessions import Note, project_of

    here = project_of(root)
    notes = [Note.of(file.note) for file in files]
    own = [
        file
        for file, note in zip(files, notes, strict=True)
        if (note and note.project == here) or not (file.note or file.was_recording)
    ]
    others = f"{counted(len(files) - len(own), 'session file')} from outside this project's tests"
    if len(own) == len(files):
        return own
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        print_lines([f"skipped {others}: --all reads them too"])
        return own
    # stdout may be a file. At the end of input the line is empty: no.
    print(f"Read {others} too? [y/N] ", end="", file=sys.stderr, flush=True)
    return list(files) if sys.stdin.readline().strip().lower() in {"y", "yes"} else own
