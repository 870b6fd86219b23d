"""``opprof run``: a script or module under recording, used as ``python -m cProfile`` is."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_opprof.cli.capture_options import add_capture_options, capture_options
from pytest_opprof.cli.output import print_lines, width
from pytest_opprof.cli.project import Project, add_store, store_of
from pytest_opprof.errors import UsageError

if TYPE_CHECKING:
    from pytest_opprof.profiler.profile import profile
    from pytest_opprof.profiler.program import Program
    from pytest_opprof.results.run import Commit

_SIGNALLED = 128


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tell the command line of this command."""
    parser = subparsers.add_parser(
        "run",
        help="run a script or a module and print what it spent its time on, as `python -m cProfile` does",
        usage="opprof run [options] (SCRIPT | -m MODULE) ...",
    )
    add_table_options(parser)
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write a Chrome trace, for Perfetto")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write a run, for `opprof show` and `opprof compare`",
    )
    parser.add_argument(
        "--compare", metavar="RUN", help="compare with a run's file, a baseline's name, or NAME@COMMIT"
    )
    add_store(parser)
    parser.add_argument("-m", "--module", action="store_true", help="run a module, as `python -m` does")
    parser.add_argument(
        "program",
        nargs=argparse.REMAINDER,
        metavar="SCRIPT ...",
        help="the script or module, then its own arguments",
    )


def add_table_options(parser: argparse.ArgumentParser) -> None:
    """What is recorded, and how its table is laid out."""
    add_capture_options(parser, stack=True)
    parser.add_argument("--sort", default="self_cpu_time_total", metavar="KEY", help="default: %(default)s")
    parser.add_argument("--rows", type=int, default=20, metavar="N", help="rows of the table, -1 for all")


def run(args: argparse.Namespace) -> int:
    """Run it, then print and write what was recorded.

    Raises:
        SystemExit: The program raised it, and not to say that all is well.
        OpprofError: There is no such program or baseline, it cannot be recorded, or a file not be written.
    """
    from pytest_opprof.baselines.git import head_commit  # noqa: PLC0415
    from pytest_opprof.baselines.resolve import find_run  # noqa: PLC0415
    from pytest_opprof.events.function_event_avg import FunctionEventAvg  # noqa: PLC0415
    from pytest_opprof.events.table import sort_rows  # noqa: PLC0415
    from pytest_opprof.profiler.program import Program, run_program  # noqa: PLC0415

    if not args.program:
        raise UsageError("opprof run needs a script, or -m and a module")
    sort_rows([FunctionEventAvg()], args.sort)  # what cannot be printed is told before the program runs
    if args.compare:
        find_run(args.compare, store=store_of(args.store))
    name, *arguments = args.program
    program = Program(name=name, is_module=args.module, arguments=tuple(arguments))
    here, process, began = Path.cwd(), os.getpid(), datetime.now(UTC)
    commit = head_commit(here) if args.output or args.compare else None
    try:
        recorded, raised = run_program(program, **capture_options(args))
    except SyntaxError as error:
        sys.excepthook(type(error), error.with_traceback(None), None)
        return 1
    code = 0
    if os.getpid() == process:  # else this is a child that the program forked
        _reopen_stdout()
        with contextlib.chdir(here):
            code = _report(args, program, recorded, passed=_is_good(raised), began=began, commit=commit)
    return code if _is_good(raised) else _end_as(raised)


def _is_good(raised: BaseException | None) -> bool:
    return raised is None or (isinstance(raised, SystemExit) and raised.code in {None, 0})


def _end_as(raised: BaseException | None) -> int:
    """End as Python would have with what the program raised: our own frames are not its traceback's."""
    if isinstance(raised, SystemExit):
        raise raised
    assert raised is not None
    own = raised.__traceback__
    raised.with_traceback(own.tb_next if own else None)
    sys.excepthook(type(raised), raised, raised.__traceback__)
    return _SIGNALLED + signal.SIGINT if isinstance(raised, KeyboardInterrupt) else 1


def _reopen_stdout() -> None:
    """A program may close ``sys.stdout``, as ``json.tool`` does: the table goes where that went."""
    if sys.stdout is None or sys.stdout.closed:
        sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115  # it stays


def _report(
    args: argparse.Namespace,
    program: Program,
    recorded: profile,
    *,
    passed: bool,
    began: datetime,
    commit: Commit | None,
) -> int:
    """Print and write; 1 where a gate failed."""
    from pytest_opprof.capture.collector import Collector  # noqa: PLC0415
    from pytest_opprof.report.text import Line, Style, escaped  # noqa: PLC0415
    from pytest_opprof.report.trace_tables import recording_title  # noqa: PLC0415

    (cycle,) = recorded.cycles
    table = recorded.key_averages().table(sort_by=args.sort, row_limit=args.rows)
    print_lines([recording_title(program.label, cycle.recording), *map(escaped, table.splitlines())])
    no_ops = Collector.instance().problems.get("ops")
    if no_ops:
        print_lines([Line(f"torch's ops are not recorded: {escaped(no_ops)}", Style.WARN)])
    if args.trace is not None:
        recorded.export_chrome_trace(args.trace)
        print_lines([f"trace: {args.trace}   (opprof trace show, or ui.perfetto.dev)"])
    if args.output is None and args.compare is None:
        return 0
    from pytest_opprof.report.terminal import comparison_lines  # noqa: PLC0415
    from pytest_opprof.results.files import write_run  # noqa: PLC0415
    from pytest_opprof.results.program_run import run_of_program  # noqa: PLC0415

    made = run_of_program(cycle.recording, name=program.label, passed=passed, created=began, commit=commit)
    if args.output is not None:
        write_run(args.output, made)
        print_lines([f"run: {args.output}   (opprof show, opprof compare)"])
    if args.compare is None:
        return 0
    from pytest_opprof.cli.comparison import compare_run  # noqa: PLC0415

    fail_on = Project.here().fail_on(None)
    comparison = compare_run(args.compare, made, store=args.store, gates=[], renames=[])
    print_lines(["", *comparison_lines(comparison, width=width(), verbosity=1, accept=None)])
    return int(any(fail_on.fails(test.verdict) for test in comparison.tests))
