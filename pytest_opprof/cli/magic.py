"""``%%opprof``: record a notebook's cell, used like ``%%prun``. Only ``%load_ext`` imports this."""

from __future__ import annotations

import argparse
import html
import re
from typing import TYPE_CHECKING

from IPython.core.error import UsageError as Refused
from IPython.core.magic import no_var_expand
from IPython.core.magic_arguments import MagicArgumentParser
from IPython.display import display

from pytest_opprof.cli.output import print_lines
from pytest_opprof.cli.recorded import (
    Start,
    add_recording_options,
    capture_options,
    table_lines,
    write_and_compare,
)
from pytest_opprof.errors import OpprofError
from pytest_opprof.report.text import Line

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from pytest_opprof.profiler.profile import profile

# One test name for every cell number, so that two recordings of a cell can be compared.
_NAME = "cell"
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")
_QUOTED = re.compile(r"""(["'])(.*?)\1""")


def register(shell: InteractiveShell) -> None:
    """Add the magic to a shell, for cells and for lines."""
    parser = _parser()

    def opprof(line: str, cell: str | None = None) -> profile | None:
        __tracebackhide__ = True
        args, statement = _parsed(parser, line)
        source = statement if cell is None else f"{statement}\n{cell}"
        if not source.strip():
            raise Refused("nothing to run: %opprof STATEMENT, or %%opprof over a cell")
        try:
            recorded, raised = _run(shell, source, args)
        except OpprofError as error:
            raise Refused(str(error)) from None
        if raised is not None:
            raise raised
        return recorded if args.returns else None

    opprof.__doc__ = parser.format_help()
    # By default IPython expands braces, which would change sets and dicts.
    shell.register_magic_function(no_var_expand(opprof), "line_cell", "opprof")


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = MagicArgumentParser(
        prog="%opprof",
        usage="%%opprof [options] STATEMENT, or %%%%opprof [options] over a cell",
        description="Run a cell and show what it spent its time on. Options are those of `opprof run`, "
        "and of %%prun.",
    )
    add_recording_options(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="show no table")
    parser.add_argument("-r", "--return", dest="returns", action="store_true", help="return the profile")
    parser.add_argument(
        "statement", nargs=argparse.REMAINDER, metavar="STATEMENT", help="what runs, before the cell"
    )
    return parser


def _parsed(parser: argparse.ArgumentParser, line: str) -> tuple[argparse.Namespace, str]:
    """The options, and the statement after them, with its spaces and quotes."""
    words = list(_WORD.finditer(line))
    args = parser.parse_args([_QUOTED.sub(r"\2", word[0]) for word in words])
    return args, line[words[-len(args.statement)].start() :] if args.statement else ""


def _run(
    shell: InteractiveShell, source: str, args: argparse.Namespace
) -> tuple[profile, BaseException | None]:
    """Run a cell as IPython does, and show the recording; return it and the cell's exception."""
    from pytest_opprof.capture.native import require  # it loads the collector
    from pytest_opprof.profiler.program import run_code

    require()
    start = Start.now(args)
    # IPython drops leading empty lines. Keep them, so that tracebacks have the notebook's line numbers.
    before = source[: -len(source.lstrip())].count("\n")
    text = "\n" * before + shell.transform_cell(source)
    tree = shell.transform_ast(shell.compile.ast_parse(text))
    name = shell.compile.cache(text, shell.displayhook.prompt_count)
    recorded, raised = run_code(shell.compile(tree, name, "exec"), shell.user_ns, **capture_options(args))
    if raised is not None and raised.__traceback__ is not None:
        raised.with_traceback(raised.__traceback__.tb_next)  # without our own frame
    try:
        _show(args, recorded, passed=raised is None, start=start)
    except OpprofError as error:
        if raised is None:
            raise
        raised.add_note(f"opprof: {error}")
    return recorded, raised


def _show(args: argparse.Namespace, recorded: profile, *, passed: bool, start: Start) -> None:
    from pytest_opprof.report.notebook import NotebookComparison

    if not args.quiet:
        lines = table_lines(args, recorded, name=_NAME)
        text = "\n".join(line.text if isinstance(line, Line) else line for line in lines)
        display({"text/plain": text, "text/html": f"<pre>{html.escape(text)}</pre>"}, raw=True)
    told: list[Line | str] = []
    try:
        comparison = write_and_compare(args, recorded, name=_NAME, passed=passed, start=start, told=told)
    finally:
        print_lines(told)
    if comparison:
        display(NotebookComparison(comparison))
