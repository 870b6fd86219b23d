"""The actions of a command, such as ``list`` of ``opprof baseline``: a parser each, and what is called."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, TypeAlias

Actions: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - its only name


def add_action(
    actions: Actions, name: str, act: Callable[..., Any], text: str, example: str
) -> argparse.ArgumentParser:
    """A parser for one more action.

    Args:
        act: What does it, as ``args.act`` once the action is given.
        example: What may be typed behind its name.
    """
    parser = actions.add_parser(name, help=text)
    parser.epilog = f"Example: {parser.prog} {example}"
    parser.set_defaults(act=act)
    return parser
