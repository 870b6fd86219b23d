"""Pieces of Markdown that no name can break out of: a document's text is in code spans.

In a code span nothing is a mention, a reference, a link, an image, an emoji or HTML, on GitHub or GitLab, and
the text can be copied. So one rule is enough, and not one for each character.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from pytest_opprof.errors import UsageError
from pytest_opprof.report.text import cut_end, cut_middle, escaped

_FENCES = re.compile(r"`+")
# What `units` writes: no name looks like it.
_NUMBER = r"[+-]?[0-9.]+(e[+-]?[0-9]+)?( [A-Za-zµ%]{1,6})?"
_QUANTITY = re.compile(rf"{_NUMBER}( to {_NUMBER})?|over|nothing|\?|")
_KEPT_IN_ADDRESSES = ":/?#[]@!$&'*+,;=%~-._"  # neither brackets that end a link nor line ends


def name_in_code(name: str, *, width: int = 120) -> str:
    """A name as a code span; a long one is cut in its middle, where names differ least."""
    # All but the ends of a megabyte would be cut anyway.
    ends = name if len(name) <= 2 * width else name[:width] + name[-width:]
    return _code(cut_middle(escaped(ends), width=width))


def sentence_in_code(sentence: str, *, width: int = 240) -> str:
    """A sentence as a code span; the end of a long one is cut."""
    return _code(cut_end(escaped(sentence[: width + 1]), width=width))


def quantity(text: str) -> str:
    """A number with its unit is plain; anything else in code."""
    return text if _QUANTITY.fullmatch(text) else name_in_code(text, width=64)


def _code(text: str) -> str:
    """A code span of printable text: fenced by more backticks than it has anywhere in a row."""
    if not text:
        return ""
    longest = max(map(len, _FENCES.findall(text)), default=0)
    fence = "`" * (longest + 1)
    # The fence takes a space of either end, unless the text is only spaces.
    is_padded = text.startswith("`") or text.endswith("`")
    is_eaten = text.startswith(" ") and text.endswith(" ") and text.strip(" ")
    pad = " " if is_padded or is_eaten else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def table_head(headers: Sequence[str], *, right: Sequence[str] = ()) -> list[str]:
    """The first two lines of a table, with our titles; columns in `right` are aligned to the right."""
    rule = ["--:" if header in right else ":--" for header in headers]
    return [f"| {' | '.join(headers)} |", f"|{'|'.join(rule)}|"]


def table_line(cells: Iterable[str]) -> str:
    """A line of a table, of Markdown without line ends.

    A bar would end the cell even in code: readers of tables remove the backslash before it.
    """
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def stacked(*lines: str) -> str:
    """Lines of one cell, which keep a table narrow; empty ones are left out."""
    return "<br>".join(filter(None, lines))


def fold(title: str, lines: Iterable[str]) -> list[str]:
    """Markdown that readers can unfold; the title is HTML of ours, or of `name_in_summary`."""
    return ["<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>", ""]


def name_in_summary(name: str, *, width: int = 120) -> str:
    """A name for the title of a fold, which is HTML and not Markdown."""
    ends = name if len(name) <= 2 * width else name[:width] + name[-width:]
    return f"<code>{html.escape(cut_middle(escaped(ends), width=width))}</code>"


def link(label: str, address: str) -> str:
    """A link to the renderer's address, never a document's; UsageError unless it is a web address."""
    if not address.startswith(("https://", "http://")):
        msg = f"{address!r} is not an address to link to: it begins with https:// or http://"
        raise UsageError(msg)
    return f"[{label}](<{quote(address, safe=_KEPT_IN_ADDRESSES)}>)"


def size(text: str) -> int:
    """How much of a limit a text takes: bytes, the strictest count of any forge."""
    return len(text.encode("utf-8"))
