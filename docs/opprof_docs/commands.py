"""The commands of ``opprof``, from its own parsers."""

from __future__ import annotations

import argparse
import inspect
from typing import TYPE_CHECKING

from opprof_docs.tables import code, table
from pytest_opprof.cli.main import whole_parser

if TYPE_CHECKING:
    from collections.abc import Iterator

_COLUMNS = 100


def command_lines() -> Iterator[str]:
    """A section for each command, and for each action of a command that has some."""
    for name, parser, text in _commands(whole_parser()):
        yield from _section(name, parser, text)


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser, str]]:
    """Each command that does something: its name, parser and what it is for."""
    for action in parser._actions:  # noqa: SLF001 - argparse shows its actions nowhere else
        if not isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            continue
        texts = {choice.dest: choice.help for choice in action._choices_actions}  # noqa: SLF001
        for name, command in action.choices.items():
            deeper = list(_commands(command))
            yield from deeper or [(command.prog, command, command.description or texts[name] or "")]


def _section(name: str, parser: argparse.ArgumentParser, text: str) -> Iterator[str]:
    yield f"## {name}"
    yield ""
    yield f"{text[:1].upper()}{text[1:].rstrip('.')}."
    yield ""
    yield "```text"
    yield from _usage(parser)
    yield "```"
    actions = [action for action in parser._actions if action.dest != "help"]  # noqa: SLF001
    yield from table(("argument", "meaning"), ((_written(one), _meaning(one)) for one in actions))


def _usage(parser: argparse.ArgumentParser) -> list[str]:
    """The line that says how it is typed, as wide as a page."""
    made = parser.formatter_class
    parser.formatter_class = lambda prog: argparse.HelpFormatter(prog, width=_COLUMNS)
    try:
        return parser.format_usage().removeprefix("usage: ").rstrip().splitlines()
    finally:
        parser.formatter_class = made


def _written(action: argparse.Action) -> str:
    metavar = action.metavar[0] if isinstance(action.metavar, tuple) else action.metavar
    if not action.option_strings:
        return code(metavar or action.dest)
    name = metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    value = "" if action.nargs == 0 else f" {name}"
    return ", ".join(code(f"{option}{value}") for option in action.option_strings)


def _meaning(action: argparse.Action) -> str:
    """The help, with what argparse fills in filled in."""
    known = {name: value for name, value in vars(action).items() if name not in {"help", "container"}}
    return inspect.cleandoc(action.help or "") % known
