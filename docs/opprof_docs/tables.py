"""Writes Markdown tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table, with empty lines around it and bars in cells escaped."""
    yield ""
    yield _row(head)
    yield _row(["---"] * len(head))
    for row in rows:
        yield _row([cell.replace("|", "\\|") for cell in row])
    yield ""


def code(text: str) -> str:
    """The text in backticks, or an empty text."""
    return f"`{text}`" if text else ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
