"""A row of the result, and how it is printed."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class Bound(enum.Enum):
    """How the measured figure must compare with the bound."""

    AT_LEAST = ">="
    AT_MOST = "<="


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One comparison.

    Attributes:
        what: What was measured.
        ours: Our figure, with its unit.
        peer: The other side's name and figure.
        figure: What is judged: a ratio, or nanoseconds where the text says so.
        bound: What it is held to; None for a row that is only printed.
        direction: Which side of the bound is right.
        unit: Behind the figure, such as "x" or "ns".
    """

    what: str
    ours: str
    peer: str
    figure: float
    bound: float | None = None
    direction: Bound = Bound.AT_LEAST
    unit: str = "x"

    @property
    def holds(self) -> bool:
        """Whether the bound is kept; a row without one always is."""
        if self.bound is None:
            return True
        return self.figure >= self.bound if self.direction is Bound.AT_LEAST else self.figure <= self.bound

    def cells(self) -> list[str]:
        """The row as text."""
        bound = "" if self.bound is None else f"{self.direction.value} {self.bound:g} {self.unit}"
        verdict = "" if self.bound is None else ("yes" if self.holds else "NO")
        return [self.what, self.ours, self.peer, f"{self.figure:.3g} {self.unit}", bound, verdict]


_HEADERS = ("what", "ours", "peer", "figure", "bound", "holds")


def as_text(rows: Sequence[Row], *, markdown: bool) -> str:
    """The table, as aligned text or as Markdown."""
    cells = [list(_HEADERS), *(row.cells() for row in rows)]
    if markdown:
        lines = [_markdown(row) for row in cells]
        return "\n".join([lines[0], _markdown(["---"] * len(_HEADERS)), *lines[1:]])
    widths = [max(len(row[i]) for row in cells) for i in range(len(_HEADERS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )


def _markdown(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def nanoseconds(value: float) -> str:
    """A time in the unit that reads best."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} ns"
