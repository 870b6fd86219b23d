"""A row of results, and its printed form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One comparison.

    Attributes:
        what: What was measured.
        ours: Our figure, with its unit.
        peer: The other side's name and figure.
        figure: The number to judge, in `unit`.
        at_least: The figure's lower bound.
        at_most: Its upper bound; a row with neither bound is only printed.
        unit: The figure's unit, such as "x" (a ratio) or "ns".
    """

    what: str
    ours: str
    peer: str
    figure: float
    at_least: float | None = None
    at_most: float | None = None
    unit: str = "x"

    @property
    def holds(self) -> bool:
        """Whether the figure is within its bounds, if it has any."""
        return (self.at_least is None or self.figure >= self.at_least) and (
            self.at_most is None or self.figure <= self.at_most
        )

    def cells(self) -> list[str]:
        """The texts of the row's columns."""
        bounds = ((">=", self.at_least), ("<=", self.at_most))
        bound = "".join(f"{sign} {value:g} {self.unit}" for sign, value in bounds if value is not None)
        verdict = ("yes" if self.holds else "NO") if bound else ""
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
