"""``opprof env``: the variables that name our collector to ITT and NVTX, for a shell to export."""

from __future__ import annotations

import argparse
import shlex

from pytest_opprof.capture.injection import INJECTIONS, library_path
from pytest_opprof.errors import UsageError

HELP = 'print what to export before Python starts: eval "$(opprof env)"'
EXAMPLE = "opprof env itt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="itt or nvtx (default: both)")


def run(args: argparse.Namespace) -> int:
    """Print one line per variable."""
    by_source = {injection.name.lower(): injection for injection in INJECTIONS}
    unknown = [source for source in args.sources if source not in by_source]
    if unknown:
        raise UsageError(f"{unknown[0]!r} needs no variable; these do: {', '.join(by_source)}")
    for source in args.sources or by_source:
        print(f"export {by_source[source].variable}={shlex.quote(str(library_path()))}")
    return 0
