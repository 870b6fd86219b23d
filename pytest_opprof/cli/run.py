"""``opprof run``: record a script or module, used like ``python -m cProfile``."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

from pytest_opprof.cli.output import print_lines, width
from pytest_opprof.cli.project import Project
from pytest_opprof.cli.recorded import (
    Start,
    add_recording_options,
    capture_options,
    table_lines,
    write_and_compare,
)
from pytest_opprof.errors import UsageError

if TYPE_CHECKING:
    from pytest_opprof.compare.comparison import Comparison

HELP = "run a script or a module and print what it spent its time on, as `python -m cProfile` does"
EXAMPLE = "opprof run --memory train.py --epochs 1"

_SIGNALLED = 128


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.usage = "opprof run [options] (SCRIPT | -m MODULE) ..."
    add_recording_options(parser)
    parser.add_argument("-m", "--module", action="store_true", help="run a module, as `python -m` does")
    parser.add_argument(
        "program",
        nargs=argparse.REMAINDER,
        metavar="SCRIPT",
        help="the script or module, then its own arguments",
    )


def run(args: argparse.Namespace) -> int:
    """Run the program, write and print the recording; end with the program's own exit code if not 0."""
    from pytest_opprof.profiler.program import Program, run_program

    typed = args.program[1:] if args.program[:1] == ["--"] else args.program
    if not typed:
        raise UsageError("opprof run needs a script, or -m and a module")
    start = Start.now(args)  # what cannot be sorted, written or compared is an error before the program runs
    name, *arguments = typed
    program = Program(name=name, is_module=args.module, arguments=tuple(arguments))
    process = os.getpid()
    try:
        recorded, raised = run_program(program, **capture_options(args))
    except SyntaxError as error:
        sys.excepthook(type(error), error.with_traceback(None), None)
        return 1
    code = 0
    if os.getpid() == process:  # else this is a child that the program forked
        _reopen_stdout()
        told = table_lines(args, recorded, name=program.label)
        # Neither a reader that goes away nor a file that cannot be written loses the other.
        try:
            comparison = write_and_compare(
                args, recorded, name=program.label, passed=_is_good(raised), start=start, told=told
            )
        finally:
            print_lines(told)
        code = _judged(comparison, start) if comparison else 0
    return code if _is_good(raised) else _end_as(raised)


def _judged(comparison: Comparison, start: Start) -> int:
    """Print a comparison; return 1 if a gate failed."""
    from pytest_opprof.report.terminal import comparison_lines

    with contextlib.chdir(start.folder):
        fail_on = Project.here().fail_on(None)
    print_lines(["", *comparison_lines(comparison, width=width(), verbosity=1, accept=None)])
    return int(any(fail_on.fails(test.verdict) for test in comparison.tests))


def _is_good(raised: BaseException | None) -> bool:
    return raised is None or (isinstance(raised, SystemExit) and raised.code in {None, 0})


def _end_as(raised: BaseException | None) -> int:
    """End as Python does after the program's exception, without our own frames in the traceback."""
    if isinstance(raised, SystemExit):
        raise raised
    assert raised is not None
    own = raised.__traceback__
    raised.with_traceback(own.tb_next if own else None)
    sys.excepthook(type(raised), raised, raised.__traceback__)
    return _SIGNALLED + signal.SIGINT if isinstance(raised, KeyboardInterrupt) else 1


def _reopen_stdout() -> None:
    """Reopen ``sys.stdout`` for the table if the program closed it, as ``json.tool`` does."""
    if sys.stdout is None or sys.stdout.closed:
        sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115  # it stays
