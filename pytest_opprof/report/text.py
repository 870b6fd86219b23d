"""Text for a terminal: hostile names made harmless, tables that fit."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

_DOTS = "..."
_GAP = 2
_NARROWEST = 12
_STILL_A_NAME = 28
_NARROWEST_SENTENCE = 40
_SECOND_COLUMN = "\0"  # escaped text has none
# GitHub's runner obeys ::command:: at the start of a line, also after blanks, and ##[command] anywhere in it;
# Azure's obeys ##vso[command], and TeamCity ##teamcity[command].
_OBEYED = re.compile(r"^ *:(?=:)|##(?=\w*\[)")


class Style(StrEnum):
    """What a line means; its printer decides on colours."""

    PLAIN = "plain"
    BOLD = "bold"
    DIM = "dim"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a report."""

    text: str
    style: Style = Style.PLAIN


def escaped(text: str) -> str:
    r"""``text`` with everything a terminal or a CI runner would obey, or cannot show, written as an escape.

    >>> print(escaped("a\x1b[31m\n"))
    a\x1b[31m\n
    """
    text = _OBEYED.sub(lambda found: f"{found[0][:-1]}\\x{ord(found[0][-1]):x}", text)
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text
    )


def columns(text: str) -> int:
    """How many columns of a terminal some escaped text takes: East Asian characters two, accents none."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(char: str) -> int:
    is_mark = unicodedata.category(char) in {"Mn", "Me"}
    return 1 - is_mark + (unicodedata.east_asian_width(char) in {"W", "F"})


def cut_middle(text: str, *, width: int) -> str:
    """``text`` in at most ``width`` columns: cut in the middle, where names differ least."""
    if columns(text) <= width:
        return text
    kept = max(width - len(_DOTS), 2)
    head = _beginning(text, width=kept // 2)
    return f"{head}{_DOTS}{_beginning(text[::-1], width=kept - columns(head))[::-1]}"


def cut_end(text: str, *, width: int) -> str:
    """``text`` in at most ``width`` columns; sentences are cut at their end."""
    return text if columns(text) <= width else _beginning(text, width=max(width - len(_DOTS), 1)) + _DOTS


def _beginning(text: str, *, width: int) -> str:
    left = width
    for at, char in enumerate(text[:width]):
        left -= _width(char)
        if left < 0:
            return text[:at]
    return text[:width]


def wrapped(text: str, *, width: int, first: str = "", rest: str = "    ", cuts: bool = False) -> list[str]:
    """A text as lines, escaped here, with two prefixes; wider than a very narrow terminal.

    A word that is longer than a line sticks out, or is cut if `cuts`.
    """
    lines = textwrap.wrap(
        _widened(escaped(text)),
        width=max(width, _NARROWEST_SENTENCE),
        initial_indent=_widened(first),
        subsequent_indent=_widened(rest),
        break_long_words=cuts,
        break_on_hyphens=False,
    )
    # What was in the middle may start a line now.
    return [escaped(line.replace(_SECOND_COLUMN, "")) for line in lines]


def _widened(text: str) -> str:
    """Text that has a character for each column, for `textwrap`, which counts characters."""
    return (
        text if text.isascii() else "".join(f"{char}{_SECOND_COLUMN * (_width(char) - 1)}" for char in text)
    )


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    width: int,
    names: int,
    sentences: int | None = None,
    right: Sequence[str] = (),
) -> list[str]:
    """A table as lines, the header first; cells are escaped here.

    In a table that is too wide, the column of names is cut in the middle: first to the width of most names,
    then further if nothing else helps. The column of sentences is cut at the end.
    """
    cells = [list(headers), *([escaped(cell) for cell in row] for row in rows)]
    widths = [max(columns(row[at]) for row in cells) for at in range(len(headers))]
    excess = sum(widths) + _GAP * (len(headers) - 1) - width
    for at, cut, least in (
        (names, cut_middle, _STILL_A_NAME),
        (sentences, cut_end, _NARROWEST),
        (names, cut_middle, _NARROWEST),
    ):
        if at is not None and excess > 0:
            fits = max(widths[at] - excess, min(least, widths[at]))
            excess -= widths[at] - fits
            widths[at] = fits
            for row in cells:
                row[at] = cut(row[at], width=fits)
    return [
        (" " * _GAP)
        .join(
            _padded(cell, width=width, is_right=header in right)
            for cell, width, header in zip(row, widths, headers, strict=True)
        )
        .rstrip()
        for row in cells
    ]


def _padded(text: str, *, width: int, is_right: bool) -> str:
    blanks = " " * (width - columns(text))
    return blanks + text if is_right else text + blanks
