"""``opprof mcp``: serve measurements to coding agents by the Model Context Protocol."""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path

from pytest_opprof.cli.project import add_store, store_of
from pytest_opprof.errors import UsageError

HELP = "serve runs, comparisons and history to a coding agent, read only"
EXAMPLE = "opprof mcp path/to/project"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    project = "the project's folder (default: this one); other paths start there"
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="FOLDER", help=project)
    add_store(parser)


def run(args: argparse.Namespace) -> int:
    """Serve over stdin and stdout until the client closes stdin."""
    try:
        from pytest_opprof.cli.mcp_server import server
    except ImportError as error:
        raise UsageError(
            f"opprof mcp needs the package mcp, 2.3 or newer: pip install 'pytest-opprof[mcp]' ({error})"
        ) from error
    try:
        os.chdir(args.folder)
    except OSError as error:
        raise UsageError(f"{args.folder} is not a folder that can be opened ({error.strerror})") from error
    store_of(args.store)  # an invalid URI ends the command here, where the user sees the error
    # The SDK's thread that reads stdin delays KeyboardInterrupt, and there is nothing to clean up.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    server(args.store).run()
    return 0
