"""``opprof ab``: is the work tree slower than its merge base, and in which op?"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_opprof.cli.output import print_lines, width
from pytest_opprof.cli.project import Project
from pytest_opprof.cli.terminated import terminated_as_interrupted
from pytest_opprof.errors import OpprofError

if TYPE_CHECKING:
    from pytest_opprof.compare.timing.comparison import TimeComparison
    from pytest_opprof.experiment.experiment_store import Kept
    from pytest_opprof.experiment.progress import Progress

HELP = "measure the work tree and BASE in turns; exits with 1 if a test became slower"
EXAMPLE = "opprof ab main tests/test_model.py -k forward"

_NEWEST = "newest"
_CLEAR = "\r\x1b[K"
_LEAST_PROCESSES = 8
_MOST_PROCESSES = 1_000
_MOST_STEPS = 1_000
_MOST_SECONDS = 3_600


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.allow_abbrev = False
    parser.description = "Pytest gets the tests, and every option that this command does not have."
    parser.add_argument(
        "base",
        metavar="BASE",
        help="a branch, tag or commit; its merge-base with HEAD is measured",
    )
    _add_options_of_times(parser)
    parser.add_argument(
        "--setup", metavar="COMMAND", help="build each side in its folder; $OPPROF_SIDE is base or head"
    )
    parser.add_argument(
        "--python",
        metavar="PATH",
        help="the interpreter of each side, relative to its folder (default: this one)",
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="seed of the order of processes (default: random)"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help="stop a process after SECONDS (default: 20 times the warm-up)",
    )
    parser.add_argument(
        "--resume",
        nargs="?",
        const=_NEWEST,
        default="",
        metavar="ID",
        help="resume an interrupted experiment (default: the newest with the same plan)",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the comparison")
    parser.add_argument("--fail-on", metavar="LIST", help="verdicts that fail (none: nothing does)")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="also what did not change")
    parser.add_argument("-q", "--quiet", action="count", default=0, help="the last line alone")
    # Not a positional: argparse would separate tests from the options between them, but their order counts.
    parser.set_defaults(pytest_args=[])


def _add_options_of_times(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--processes", type=int, metavar="N", help="processes per side (default 12, minimum 8)"
    )
    parser.add_argument(
        "--steps", type=int, metavar="N", help="timed steps of each test in each process (default 15)"
    )
    parser.add_argument(
        "--max-time",
        type=float,
        metavar="SECONDS",
        help="how much longer a test may take in a process, to find undisturbed steps (default: 1)",
    )
    parser.add_argument(
        "--min-effect",
        default="3%",
        metavar="SHARE",
        help="the smallest change of time that counts (default: 3%%)",
    )
    parser.add_argument(
        "--max-noise",
        default="20%",
        metavar="SHARE",
        help="do not judge a test whose base differs from itself by more (default: 20%%)",
    )


def run(args: argparse.Namespace) -> int:
    """Measure, judge, write, print."""
    from pytest_opprof.compare.timing.comparison import TimeSettings
    from pytest_opprof.compare.timing.document import write_time_comparison
    from pytest_opprof.experiment.ab import run_ab
    from pytest_opprof.experiment.request import Request
    from pytest_opprof.report.ab import ab_lines
    from pytest_opprof.results.files import check_writable
    from pytest_opprof.units import check_between, parse_percent

    project = Project.here()
    fail_on = project.fail_on(args.fail_on)
    verbosity = args.verbose - args.quiet
    check_between("--processes", args.processes, _LEAST_PROCESSES, _MOST_PROCESSES)
    check_between("--steps", args.steps, 1, _MOST_STEPS)
    check_between("--max-time", args.max_time, 0, _MOST_SECONDS)
    request = Request(
        base=args.base,
        arguments=tuple(args.pytest_args),
        processes=args.processes,
        steps=args.steps,
        max_time=args.max_time,
        seed=args.seed,
        setup=args.setup,
        python=args.python,
        timeout=args.timeout,
        resume=args.resume,
        settings=TimeSettings(
            min_effect=parse_percent(args.min_effect, where="--min-effect"),
            max_noise=parse_percent(args.max_noise, where="--max-noise"),
        ),
    )
    if args.output is not None:
        check_writable(args.output)

    def deliver(comparison: TimeComparison) -> None:
        try:
            if args.output is not None:
                write_time_comparison(args.output, comparison)
        except OpprofError:
            print_lines(ab_lines(comparison, width=width(), verbosity=verbosity))
            raise

    with terminated_as_interrupted():
        comparison = run_ab(
            request,
            folder=Path.cwd(),
            root=project.folder.parent,
            watcher=_Terminal(args.given, is_quiet=verbosity < 0),
            deliver=deliver,
        )
    print_lines(ab_lines(comparison, width=width(), verbosity=verbosity))
    return int(any(fail_on.fails(test.verdict) for test in comparison.tests))


class _Terminal:
    """Shows an experiment's progress: redraws one line of a terminal, else prints a line at a time."""

    def __init__(self, given: Sequence[str], *, is_quiet: bool) -> None:
        self._command, *self._arguments = given
        self._is_quiet = is_quiet
        self._draws = sys.stdout.isatty()

    def tell(self, sentence: str) -> None:
        if not self._is_quiet:
            self._clear()
            print_lines(sentence.splitlines())
            sys.stdout.flush()

    def progress(self, progress: Progress) -> None:
        from pytest_opprof.experiment.progress import bar

        if self._is_quiet:
            return
        if not self._draws:
            if progress.done:
                self.tell(progress.text)
            return
        self._clear()
        if progress.done < progress.total:
            drawn = f"{bar(progress.done, progress.total)} {progress.text}"
            print(drawn[: width() - 1], end="", flush=True)

    def unfinished(self, kept: Kept) -> None:
        from pytest_opprof.results.files import shown

        self._clear()
        # The plan keeps what is measured, but not how it is judged: repeat each option.
        others = (word for word in self._arguments if not word.startswith("--resume") and word != kept.name)
        # First: after a `--` it would be a test.
        again = shlex.join(["opprof", self._command, f"--resume={kept.name}", *others])
        print(
            f"opprof: {kept.done} processes are kept in {shown(kept.folder)}; resume with: {again}",
            file=sys.stderr,
        )

    def _clear(self) -> None:
        if self._draws:
            print(_CLEAR, end="", flush=True)
