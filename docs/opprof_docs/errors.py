"""The table of exit codes and the errors behind them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from opprof_docs.tables import code, table
from pytest_opprof.errors import OpprofError

if TYPE_CHECKING:
    from collections.abc import Iterator

_OF_VERDICTS = (
    ("0", "", "No gate failed."),
    ("1", "", "A gate failed, or a command did not find what it was asked for."),
)


def error_lines() -> Iterator[str]:
    """A row for each exit code and error class."""
    errors = sorted(_tree(OpprofError), key=lambda each: (each.exit_code, each.__name__))
    rows = [(str(each.exit_code), code(each.__name__), _meaning(each)) for each in errors]
    return table(("exit code", "error", "meaning"), [*_OF_VERDICTS, *rows])


def _tree(error: type[OpprofError]) -> Iterator[type[OpprofError]]:
    """An error class and its subclasses, without those outside the public module."""
    if error.__module__ == OpprofError.__module__:
        yield error
    for below in error.__subclasses__():
        yield from _tree(below)


def _meaning(error: type[OpprofError]) -> str:
    return inspect.cleandoc(error.__doc__ or "").replace("\n\n", " ").replace("\n", " ")
