"""Whether a program printed what a page shows, by meaning.

Commits, dates, times, and what is drawn of times differ from run to run, and spaces follow from them. ``...`` in a line is any text,
and a line of it any lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_ANY = "..."
_VARYING = (
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"(?<=[0-9a-f]{40})_py[\w.-]+?(?=\.json)"), " FAMILY"),
    (re.compile(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{7,64}\b"), "COMMIT"),
    (re.compile(r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}( [0-9]{2}:[0-9]{2})?( UTC)?"), "DATE"),
    (re.compile(r"(?<![0-9.])[+-]?[0-9]+(\.[0-9]+)? (ns|µs|us|ms|s)\b"), "TIME"),
    (re.compile(r"\b(less than a minute|[0-9]+ (minutes?|hours?|days?|weeks?)) old\b"), "AGE"),
    (re.compile(r"\b[0-9]+(\.[0-9]+)?(us|ms|s)\b"), "TIME"),
    (re.compile(r"[▁▂▃▄▅▆▇█]+"), "TREND"),
    (re.compile(r"([-=_─━])\1{3,}"), r"\1\1\1"),
    (re.compile(r"\s+"), " "),
)


def means(printed: str, shown: str) -> bool:
    """Whether the printed text matches the shown text."""
    return _match(_lines(printed), _lines(shown))


def _lines(text: str) -> list[str]:
    lines = (_normal(line) for line in text.splitlines())
    return [line for line in lines if line]


def _normal(line: str) -> str:
    for pattern, word in _VARYING:
        line = pattern.sub(word, line)
    return line.strip()


def _match(printed: Sequence[str], shown: Sequence[str]) -> bool:
    """Compare from the last line to the first: `possible[i]` says whether the rest from line i matches."""
    possible = [False] * len(printed) + [True]
    for wanted in reversed(shown):
        if wanted == _ANY:
            last = max((i for i, whether in enumerate(possible) if whether), default=-1)
            possible = [i <= last for i in range(len(possible))]
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in wanted.split(_ANY)))
        fits = (pattern.fullmatch(line) is not None for line in printed)
        possible = [fit and after for fit, after in zip(fits, possible[1:], strict=True)] + [False]
    return possible[0]
