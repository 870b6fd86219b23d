"""Tables in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table, with an empty line around it; a bar in a cell would end the cell."""
    yield ""
    yield _row(head)
    yield _row(["---"] * len(head))
    for row in rows:
        yield _row([cell.replace("|", "\\|") for cell in row])
    yield ""


def code(text: str) -> str:
    """A text as code; nothing where there is none."""
    return f"`{text}`" if text else ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
