"""``opprof trace``: show and compare traces that other tools wrote, and make runs from them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_opprof.cli.actions import add_action
from pytest_opprof.cli.output import print_lines, width
from pytest_opprof.report.text import escaped

if TYPE_CHECKING:
    from pytest_opprof.traces.imported_recording import ImportedRecording

HELP = "show or compare Kineto traces, or make a run of one"
EXAMPLE = "opprof trace show trace.json.gz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", title="actions")
    parser = add_action(actions, "show", _show, "print a trace's key averages", "trace.json.gz --steps")
    parser.add_argument("file", type=Path, metavar="FILE", help="a trace in Kineto's format, plain or gzip")
    parser.add_argument("--sort", default="self_cpu_time_total", metavar="KEY", help="default: %(default)s")
    parser.add_argument("--rows", type=int, default=20, metavar="N", help="rows of the table, -1 for all")
    parser.add_argument("--steps", action="store_true", help="also print a line for each step")
    parser.add_argument(
        "--collectives", action="store_true", help="also print each NCCL collective, its size and bandwidth"
    )
    parser.add_argument(
        "--overlap", action="store_true", help="also print computing, communication and overlap in each step"
    )
    parser.add_argument(
        "--idle",
        action="store_true",
        help="also print why each device was idle in each step, and its peak memory",
    )
    parser = add_action(actions, "diff", _diff, "compare two traces op by op", "before.json.gz after.json.gz")
    parser.add_argument("base", type=Path, metavar="BASE", help="a trace")
    parser.add_argument("head", type=Path, metavar="HEAD", help="the trace that is compared with it")
    parser.add_argument("--rows", type=int, default=20, metavar="N", help="rows of the table, -1 for all")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="TRACE", help="write both as one trace, with what differs marked"
    )
    what = "write a run from a trace, for `opprof compare`"
    parser = add_action(actions, "to-run", _to_run, what, "-o run.json trace.json.gz")
    parser.add_argument("file", type=Path, metavar="FILE", help="a trace")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="RUN", help="the run's file")
    parser.add_argument(
        "--test", default="trace", metavar="ID", help="the name of the run's test; default: %(default)s"
    )


def run(args: argparse.Namespace) -> int:
    """Run the chosen action."""
    args.act(args)
    return 0


def _show(args: argparse.Namespace) -> None:
    from pytest_opprof.report.trace_tables import step_lines, trace_title, unread_lines
    from pytest_opprof.traces.kineto import load_trace

    trace = load_trace(args.file)
    table = trace.key_averages().table(sort_by=args.sort, row_limit=args.rows)
    print_lines([trace_title(trace), *unread_lines(trace)])
    if args.steps:
        print_lines(step_lines(trace, width=width()))
    _show_devices(trace.recording, args)
    print_lines(map(escaped, table.splitlines()))


def _show_devices(recording: ImportedRecording, args: argparse.Namespace) -> None:
    from pytest_opprof.analysis.collectives import collectives
    from pytest_opprof.analysis.device_time import device_times, peak_memory
    from pytest_opprof.report import trace_tables

    numbers = [step.number for step in recording.steps]
    if args.collectives:
        found = collectives(recording)
        print_lines(trace_tables.collective_lines(found, numbers, rows=args.rows, width=width()))
    times = device_times(recording) if args.overlap or args.idle else []
    if args.overlap:
        print_lines(trace_tables.overlap_lines(times, numbers, width=width()))
    if args.idle:
        print_lines(trace_tables.idle_lines(times, numbers, width=width()))
        print_lines(trace_tables.peak_memory_lines(recording, peak_memory(recording)))


def _diff(args: argparse.Namespace) -> None:
    from pytest_opprof.report.trace_tables import difference_lines, trace_title, unread_lines
    from pytest_opprof.traces.difference import difference
    from pytest_opprof.traces.kineto import load_trace
    from pytest_opprof.traces.merged import write_merged

    base, head = load_trace(args.base), load_trace(args.head)
    found = difference(base.recording, head.recording)
    titles = (line for trace in (base, head) for line in (trace_title(trace), *unread_lines(trace)))
    told = [*titles, *difference_lines(found, rows=args.rows, width=width())]
    try:
        if args.output is not None:
            marked = write_merged(base, head, args.output, found=found)
            told.append(f"{args.output}: base and head side by side, marked ops: {marked}")
    finally:
        print_lines(told)


def _to_run(args: argparse.Namespace) -> None:
    from pytest_opprof.report.trace_tables import unread_lines
    from pytest_opprof.results.files import write_run
    from pytest_opprof.results.trace_run import run_from_trace
    from pytest_opprof.traces.kineto import load_trace

    trace = load_trace(args.file)
    made = run_from_trace(trace, test_name=args.test)
    write_run(args.output, made)
    (test,) = made.tests
    told = f"{args.output}: {len(test.ops)} ops in steps: {test.steps}, as test {args.test!r}"
    print_lines([*unread_lines(trace), told])
