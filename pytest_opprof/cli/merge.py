"""``opprof merge``: join the runs of CI shards and of a program's ranks."""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

from pytest_opprof.cli.output import print_lines
from pytest_opprof.errors import UsageError
from pytest_opprof.report.text import Line, Style, escaped
from pytest_opprof.wording import counted

HELP = "join the runs of shards and ranks"
EXAMPLE = "opprof merge -o run.json --expect 2 shard-1.json shard-2.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.description = (
        "Exits with 1 if a shard, a rank or a test is missing; the run is still written, and says so."
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="the files of --opprof-json")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="the joined run")
    parser.add_argument("--expect", type=int, metavar="N", help="how many shards there should be")
    parser.add_argument(
        "--collected",
        type=Path,
        metavar="FILE",
        help="tests that should be there: what pytest --opprof=only --collect-only -q prints",
    )


def run(args: argparse.Namespace) -> int:
    """Join, write, and print what is missing."""
    from pytest_opprof.results.files import write_run
    from pytest_opprof.results.shards import Part, join

    parts = [Part.of_file(path) for path in args.runs]
    joined = join(parts, expected=args.expect, collected=_node_ids(args.collected) if args.collected else ())
    write_run(args.output, joined.run)
    print_lines(map(escaped, joined.notes))
    print_lines(Line(escaped(f"missing: {gap}"), Style.BAD) for gap in joined.gaps)
    tests, runs = counted(len(joined.run.tests), "test"), counted(len(args.runs), "run")
    print_lines([f"{args.output}: {tests} of {runs}"])
    return int(bool(joined.gaps))


def _node_ids(path: Path) -> list[str]:
    from pytest_opprof.results.files import read_bytes
    from pytest_opprof.results.names import canonical_node_id

    lines = read_bytes(path).decode("utf-8", "replace").splitlines()
    listed = itertools.dropwhile(lambda line: "::" not in line, lines)
    # A blank line ends them: a summary of warnings, which may have :: too, comes after it.
    ids = itertools.takewhile(str.strip, listed)
    found = dict.fromkeys(canonical_node_id(line.strip()) for line in ids if "::" in line)
    if not found:
        raise UsageError(f"{path} names no test: write it with pytest --opprof=only --collect-only -q")
    return list(found)
