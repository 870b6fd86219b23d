"""``opprof import-benchmarks``: make a run from a pytest-benchmark file, so its times can be a baseline."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_opprof.cli.output import print_lines
from pytest_opprof.report.text import escaped
from pytest_opprof.wording import counted

HELP = "make a run from a file that pytest-benchmark stored"
EXAMPLE = "opprof import-benchmarks -o run.json .benchmarks/*/0001_main.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("file", type=Path, metavar="FILE", help="such as .benchmarks/*/0001_name.json")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="RUN", help="the run's file")


def run(args: argparse.Namespace) -> int:
    """Convert the file."""
    from pytest_opprof.results.benchmark_run import run_from_benchmarks
    from pytest_opprof.results.files import write_run

    made = run_from_benchmarks(args.file)
    write_run(args.output, made)
    tests = counted(len(made.tests), "test")
    print_lines(
        escaped(line) for line in (f"{args.output}: wall_time of {tests}, of {made.title}", *made.notes)
    )
    return 0
