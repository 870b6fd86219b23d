"""``opprof validate``: can this release use these files?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pytest_opprof.errors import OpprofError
from pytest_opprof.report.text import escaped
from pytest_opprof.wording import counted

HELP = "check files against their schemas"
EXAMPLE = "opprof validate run.json .opprof/accepted.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="a file of a run, a comparison or a fleet, or accepted.json",
    )


def run(args: argparse.Namespace) -> int:
    """Check every file, also after an invalid one; return the exit code of the last error."""
    code = 0
    for path in args.files:
        try:
            print(f"{path}: ok ({_checked(path)})")
        except OpprofError as error:
            print(f"opprof: {escaped(str(error))}", file=sys.stderr)
            code = error.exit_code
    return code


def _checked(path: Path) -> str:
    """Check a file, and describe its content."""
    from pytest_opprof.baselines.accepted import accepted_from_document
    from pytest_opprof.compare.document import comparison_from_document
    from pytest_opprof.results.document import run_from_document
    from pytest_opprof.results.files import parse, read_bytes
    from pytest_opprof.results.schema import Contract, contract_of, validate

    document = parse(read_bytes(path), where=str(path))
    contract = contract_of(document, where=str(path))
    checked = validate(document, contract, where=str(path))
    # A schema cannot check everything: reading the whole file finds contradictory numbers.
    match contract:
        case Contract.RUN:
            count, what = len(run_from_document(checked, where=str(path)).tests), "test"
        case Contract.COMPARISON:
            count, what = len(comparison_from_document(checked, where=str(path)).tests), "test"
        case Contract.ACCEPTED:
            count, what = len(accepted_from_document(checked, where=str(path))), "value"
        case Contract.FLEET_SUMMARY:
            count, what = len(checked["ranks"]), "rank"
        case Contract.FLEET_DIFFERENCE:
            count, what = len(checked["ops"]), "op"
    return f"{contract}, {counted(count, what)}"
