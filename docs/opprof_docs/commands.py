"""The commands of ``opprof``, read from its parsers."""

from __future__ import annotations

import argparse
import inspect
import textwrap
from typing import TYPE_CHECKING

from opprof_docs.tables import code, table
from pytest_opprof.cli.main import whole_parser

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_COLUMNS = 100


def command_lines() -> Iterator[str]:
    """A section for each command; a command with subcommands has a section for each of those instead."""
    for name, parser, text in _commands(whole_parser()):
        yield from _section(name, parser, text)


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser, str]]:
    """The name, parser and description of each command without subcommands."""
    for action in parser._actions:  # noqa: SLF001 - argparse shows its actions nowhere else
        if not isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            continue
        for command in action.choices.values():
            deeper = list(_commands(command))
            yield from deeper or [(command.prog, command, command.description or "")]


def _section(name: str, parser: argparse.ArgumentParser, text: str) -> Iterator[str]:
    actions = [action for action in parser._actions if action.dest != "help"]  # noqa: SLF001
    yield f"## {name}"
    yield ""
    yield text
    yield ""
    yield "```text"
    yield from _usage(name, actions)
    yield "```"
    yield ""
    yield f"Example: `{(parser.epilog or '').removeprefix('Example: ')}`"
    yield from table(("argument", "meaning"), ((_written(one), _meaning(one)) for one in actions))


def _usage(name: str, actions: Sequence[argparse.Action]) -> list[str]:
    """The usage text; argparse's own differs between Python releases."""
    # The argument that takes all remaining words is last.
    order = sorted(actions, key=lambda one: (one.nargs == argparse.REMAINDER, not one.option_strings))
    words = [_word(action) for action in order]
    indent = " " * (len(name) + 1)
    # An argument and its value stay on one line.
    text = " ".join((name, *(word.replace(" ", "\0") for word in words)))
    lines = textwrap.wrap(text, _COLUMNS, subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


def _word(action: argparse.Action) -> str:
    """An argument in the usage text, in brackets if it is optional."""
    name, many = _name(action), " ..." if action.nargs in {"*", "+", argparse.REMAINDER} else ""
    if action.option_strings:
        name = " ".join((action.option_strings[-1], *([name] if action.nargs != 0 else [])))
    # Whether argparse calls a positional argument required differs between Python releases.
    is_required = action.required if action.option_strings else action.nargs not in {"?", "*"}
    return f"{name}{many}" if is_required else f"[{name}{many}]"


def _written(action: argparse.Action) -> str:
    if not action.option_strings:
        return code(_name(action))
    value = "" if action.nargs == 0 else f" {_name(action)}"
    return ", ".join(code(f"{option}{value}") for option in action.option_strings)


def _name(action: argparse.Action) -> str:
    """The placeholder for its value."""
    if action.metavar:
        return action.metavar[0] if isinstance(action.metavar, tuple) else action.metavar
    if not action.option_strings:
        return action.dest
    return "|".join(map(str, action.choices)) if action.choices else action.dest.upper()


def _meaning(action: argparse.Action) -> str:
    """The help text with argparse's placeholders filled in."""
    known = {name: value for name, value in vars(action).items() if name not in {"help", "container"}}
    return inspect.cleandoc(action.help or "") % known
