"""Tables of the marker's arguments and the plugin's pytest options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opprof_docs.tables import code, table
from pytest_opprof.plugin.marker import ARGUMENTS
from pytest_opprof.plugin.option_table import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_opprof.plugin.option_table import Option


def marker_lines() -> Iterator[str]:
    """A row for each argument of the marker."""
    return table(("argument", "meaning"), ((code(name), meaning) for name, meaning in ARGUMENTS.items()))


def option_lines() -> Iterator[str]:
    """A row for each pytest option of the plugin."""
    return table(("option", "meaning"), ((_written(option), _meaning(option)) for option in OPTIONS))


def _written(option: Option) -> str:
    return code(f"--{option.name}={option.metavar}")


def _meaning(option: Option) -> str:
    """The help as pytest prints it, and the default."""
    default = f" (default: {code(option.default)})" if option.default else ""
    return option.help.replace("%%", "%") + default
