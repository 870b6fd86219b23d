"""A command's actions, such as ``list`` of ``opprof baseline``: each has a parser and a function."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, TypeAlias

Actions: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - its only name


def add_action(
    actions: Actions, name: str, act: Callable[..., Any], text: str, example: str
) -> argparse.ArgumentParser:
    """Add an action's parser, which sets ``args.act``; its help ends with the arguments of an example."""
    parser = actions.add_parser(name, help=text)
    parser.epilog = f"Example: {parser.prog} {example}"
    parser.set_defaults(act=act)
    return parser
