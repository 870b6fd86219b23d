"""What a line says of its statement: ``return {`` says too little, so the next lines are shown with it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate

# Opening brackets, perhaps after an assignment or a keyword. `f(` names what is called.
_SAYS_LITTLE = re.compile(
    r"(?:.*[^=!<>]=\s*|(?:.*\s)?(?:return|yield|from|await|if|elif|while|with|assert|in|and|or|not|else)\b\s*)?"
    r"[\[({\s]+"
)
_MOST_LINES = 8
_MOST = 120  # two lines of a narrow terminal
_DOTS = " ..."


def rest_of_statement(lines: Sequence[str], number: int) -> tuple[str, ...]:
    """The text of the lines after one that says little, as far as its brackets go; at most a few."""
    text = lines[number - 1].strip() if number <= len(lines) else ""
    if not says_little(text):
        return ()
    rest = [line.strip() for line in lines[number : number + _MOST_LINES]]
    depths = accumulate(map(_depth, rest), initial=_depth(text))
    closed = next((at for at, depth in enumerate(depths) if depth <= 0), len(rest))
    return tuple(rest[:closed])


def says_little(text: str) -> bool:
    """Whether a line only opens brackets, such as ``[`` or ``rows = [``."""
    return text[-1:] in {"[", "(", "{"} and _SAYS_LITTLE.fullmatch(text) is not None


def statement_at(place: str, lines: Mapping[str, str]) -> str:
    """The text of a place, with the lines below it if it says little; `lines` are texts by place."""
    texts = [lines.get(line_below(place, number), "") for number in range(_MOST_LINES + 1)]
    return joined(texts[0], rest_of_statement(texts, 1))


def line_below(place: str, number: int) -> str:
    """The place so many lines below another one: ``f, a.py:7`` is 2 below ``f, a.py:5``."""
    start, _, line = place.rpartition(":")
    return f"{start}:{int(line) + number}" if number and line.isdecimal() else place


def joined(text: str, rest: Sequence[str]) -> str:
    """A line and those that follow as one, without comments, cut at a word; a line alone as it is."""
    if not rest:
        return text
    for line in (line.partition("  #")[0] for line in rest):
        if line and not line.startswith("#"):
            is_inside = text[-1] in "[({" or line[0] in "])}"
            text += line if is_inside else f" {line}"
    if len(text) <= _MOST:
        return text
    kept = text[: _MOST - len(_DOTS)]
    return (kept.rpartition(" ")[0] or kept) + _DOTS


def _depth(text: str) -> int:
    return sum(text.count(mark) for mark in "[({") - sum(text.count(mark) for mark in "])}")
