"""``opprof validate``: are these files documents that this release can use?"""

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
    """Tell the parser what may be given to this command."""
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="a file of a run, a comparison or a fleet, or accepted.json",
    )


def run(args: argparse.Namespace) -> int:
    """Check every file, also after one that is wrong; the exit code is that of the last one wrong."""
    code = 0
    for path in args.files:
        try:
            print(f"{path}: ok ({_checked(path)})")
        except OpprofError as error:
            print(f"opprof: {escaped(str(error))}", file=sys.stderr)
            code = error.exit_code
    return code


def _checked(path: Path) -> str:
    """What a valid file holds, in few words."""
    from pytest_opprof.baselines.accepted import accepted_from_document  # noqa: PLC0415
    from pytest_opprof.compare.document import comparison_from_document  # noqa: PLC0415
    from pytest_opprof.results.document import run_from_document  # noqa: PLC0415
    from pytest_opprof.results.files import parse, read_bytes  # noqa: PLC0415
    from pytest_opprof.results.schema import Contract, contract_of, validate  # noqa: PLC0415

    document = parse(read_bytes(path), where=str(path))
    contract = contract_of(document, where=str(path))
    checked = validate(document, contract, where=str(path))
    # The schema cannot say all: reading it whole finds numbers that contradict each other.
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
