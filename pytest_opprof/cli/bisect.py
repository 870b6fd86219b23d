"""``opprof bisect``: the first commit at which an exact metric changed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_opprof.cli.output import print_lines
from pytest_opprof.cli.project import add_store, store_of
from pytest_opprof.cli.terminated import terminated_as_interrupted
from pytest_opprof.report.text import escaped

if TYPE_CHECKING:
    from pytest_opprof.experiment.bisect import Bisected, CommitValue

HELP = "find the commit that changed an exact metric of a test"
EXAMPLE = "opprof bisect tests/test_model.py::test_step aten::copy_.count"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.description = (
        "Exits with 0 if it names one commit, and with 1 if nothing changed or the commits around the "
        "change cannot be measured."
    )
    parser.add_argument("test", metavar="TEST", help="the test's id, as pytest takes it here")
    parser.add_argument(
        "metric", metavar="METRIC", help="such as ops.count or aten::copy_.count; of aten::*.count, the sum"
    )
    parser.add_argument(
        "--good",
        metavar="REV",
        help="a commit with the old value (default: the nearest commit with a stored run)",
    )
    parser.add_argument("--bad", default="HEAD", metavar="REV", help="default: %(default)s")
    parser.add_argument(
        "--setup", default="", metavar="CMD", help="a shell command in each commit's files, such as a build"
    )
    parser.add_argument(
        "--python",
        default="",
        metavar="PATH",
        help="the interpreter of each commit, relative to its folder (default: this one)",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help="stop the process at a commit after SECONDS (default: never)",
    )
    parser.add_argument("--resume", action="store_true", help="resume the bisection that was interrupted")
    add_store(parser)


def run(args: argparse.Namespace) -> int:
    """Search, and print each measurement and the answer."""
    from pytest_opprof.experiment.bisect import Bisection, question_of

    here = Path.cwd()
    question = question_of(
        args.test,
        args.metric,
        good=args.good,
        bad=args.bad,
        setup=args.setup,
        python=args.python,
        store=store_of(args.store),
        repository=here,
    )
    bisection = Bisection(
        question,
        repository=here,
        say=lambda text: print(escaped(text), flush=True),
        timeout=args.timeout,
    )
    with terminated_as_interrupted():
        answer = bisection.run(resume=args.resume)
    print_lines(_answer_lines(answer))
    return 0 if answer.is_found else 1


def _answer_lines(answer: Bisected) -> Iterator[str]:
    before, newest = answer.before, answer.newest
    yield ""
    if not answer.suspects:
        yield f"{answer.path} is {newest.measured.value} at both ends: nothing changed"
        return
    last = answer.suspects[-1]
    if answer.is_found:
        yield f"{last.id} changed {answer.path} from {before.measured.value} to {last.measured.value}"
        yield escaped(f"    author   {last.author}")
        yield escaped(f"    date     {last.date}")
        yield escaped(f"    subject  {last.subject}")
    else:
        yield f"{answer.path} changed from {before.measured.value} to {last.measured.value} in one of:"
        yield from (escaped(f"    {_short(commit)}") for commit in answer.suspects)
    yield escaped(f"    before   {_short(before)}")
    if newest.measured.value != last.measured.value:
        yield f"    it changed again later: {newest.id[:7]} has {newest.measured.value}"


def _short(commit: CommitValue) -> str:
    told = (
        f"skipped: {commit.measured.reason}" if commit.measured.value is None else str(commit.measured.value)
    )
    return f"{commit.id[:7]} {commit.subject} ({commit.author}): {told}"
