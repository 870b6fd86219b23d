"""What a test and a session can be told: the marker's arguments, and pytest's options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opprof_docs.tables import code, table
from pytest_opprof.plugin.marker import ARGUMENTS
from pytest_opprof.plugin.options import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator


def marker_lines() -> Iterator[str]:
    """A row for each argument of the marker."""
    return table(("argument", "meaning"), ((code(name), meaning) for name, meaning in ARGUMENTS.items()))


def option_lines() -> Iterator[str]:
    """A row for each option of pytest, with its ini key."""
    return table(
        ("option", "ini key", "meaning", "default"),
        (
            (
                code(f"--{option.name}={option.metavar}"),
                code(option.dest),
                option.help.replace("%%", "%"),
                code(option.default or ""),
            )
            for option in OPTIONS
        ),
    )
