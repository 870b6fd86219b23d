"""The options of commands that record; the table, files and comparison of ``opprof run`` and ``%%opprof``."""

from __future__ import annotations

import argparse
import contextlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_opprof.cli.project import add_store, store_of
from pytest_opprof.report.text import Line, Style, escaped

if TYPE_CHECKING:
    from pytest_opprof.compare.comparison import Comparison
    from pytest_opprof.profiler.profile import profile
    from pytest_opprof.results.run import Commit, Run


# The profiler's with_stack, by --stack and --cpp-stack.
_STACKS: Final = {(False, False): False, (True, False): "python", (False, True): "cpp", (True, True): "all"}


def add_capture_options(parser: argparse.ArgumentParser, *, stack: bool) -> None:
    """Add the options; ``stack`` is the default of ``--stack``."""
    parser.add_argument("--shapes", action="store_true", help="record the ops' input shapes and dtypes")
    parser.add_argument("--memory", action="store_true", help="record memory")
    default = "on by default" if stack else "off by default"
    parser.add_argument(
        "--stack",
        action=argparse.BooleanOptionalAction,
        default=stack,
        help=f"record Python and C calls; {default}",
    )
    parser.add_argument("--cpp-stack", action="store_true", help="record the C++ stack of each op and range")
    parser.add_argument(
        "--sampling",
        type=float,
        default=1.0,
        metavar="SHARE",
        help="record a share of torch's ops, such as 0.01",
    )


def capture_options(args: argparse.Namespace) -> dict[str, Any]:
    """The chosen options as arguments of `profile`."""
    from pytest_opprof.capture.sources import parse_sampling  # needs no command else

    return {
        "record_shapes": args.shapes,
        "profile_memory": args.memory,
        "with_stack": _STACKS[args.stack, args.cpp_stack],
        "sampling": parse_sampling(args.sampling, where="--sampling"),
    }


def add_recording_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for recording, the table, the files and the comparison."""
    add_capture_options(parser, stack=True)
    parser.add_argument(
        "-s", "--sort", default="self_cpu_time_total", metavar="KEY", help="default: %(default)s"
    )
    parser.add_argument("--rows", type=int, default=20, metavar="N", help="rows of the table, -1 for all")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The state before a recording, which the recorded code may change."""

    folder: Path  # the current folder, which the paths of files are relative to
    time: datetime
    commit: Commit | None  # the checked-out commit; None without one, or if no file or comparison needs it

    @classmethod
    def now(cls, args: argparse.Namespace) -> Start:
        """Check the options of `add_recording_options`, and take the current state."""
        from pytest_opprof.events.function_event_avg import FunctionEventAvg
        from pytest_opprof.events.table import sort_rows

        sort_rows([FunctionEventAvg()], args.sort)
        for path in filter(None, (args.trace, args.output)):
            from pytest_opprof.results.files import check_writable

            check_writable(path)
        if args.compare:
            from pytest_opprof.baselines.resolve import find_run

            find_run(args.compare, store=store_of(args.store))
        here, commit = Path.cwd(), None
        if args.output or args.compare:  # each script would wait for this import
            from pytest_opprof.baselines.git import Git

            commit = Git(here).head()
        return cls(folder=here, time=datetime.now(UTC), commit=commit)


def table_lines(args: argparse.Namespace, recorded: profile, *, name: str) -> list[Line | str]:
    """The table of a profile's only cycle under its title, and a warning if it has no ops of torch."""
    from pytest_opprof.capture.collector import Collector
    from pytest_opprof.report.trace_tables import recording_title

    (cycle,) = recorded.cycles
    rows = recorded.key_averages()
    # A notebook's kernel has its own threads, whose calls are not the cell's.
    rows[:] = [row for row in rows if not (row.is_background and row.first and row.first.is_python_function)]
    table = rows.table(sort_by=args.sort, row_limit=args.rows)
    lines: list[Line | str] = [recording_title(name, cycle.recording), *map(escaped, table.splitlines())]
    if no_ops := Collector.instance().problems.get("ops"):
        lines.append(Line(f"torch's ops are not recorded: {escaped(no_ops)}", Style.WARN))
    return lines


def write_and_compare(
    args: argparse.Namespace,
    recorded: profile,
    *,
    name: str,
    passed: bool,
    start: Start,
    told: list[Line | str],
) -> Comparison | None:
    """Write the requested files, add a line on each to `told`, and return the requested comparison.

    The numbers are not judged unless the code has `passed`.
    """
    made = None
    with contextlib.chdir(start.folder):
        if args.output is not None or args.compare is not None:
            from pytest_opprof.results.program_run import run_of_program

            (cycle,) = recorded.cycles
            made = run_of_program(
                cycle.recording, name=name, passed=passed, created=start.time, commit=start.commit
            )
        try:
            if args.trace is not None:
                _write_trace(args.trace, recorded, told)
        finally:  # neither file that cannot be written loses the other
            if made is not None and args.output is not None:
                _write_run(args.output, made, told)
        if made is None or args.compare is None:
            return None
        from pytest_opprof.cli.comparison import compare_run

        return compare_run(args.compare, made, store=args.store, gates=[], renames=[])


def _write_trace(path: Path, recorded: profile, told: list[Line | str]) -> None:
    from pytest_opprof.results.files import store_errors

    with store_errors(path, "cannot be written"):
        recorded.export_chrome_trace(path)
    told.append(f"trace: {path}   (opprof trace show, or ui.perfetto.dev)")


def _write_run(path: Path, made: Run, told: list[Line | str]) -> None:
    from pytest_opprof.results.files import write_run

    write_run(path, made)
    told.append(f"run: {path}   (opprof show, opprof compare)")
