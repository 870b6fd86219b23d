"""Phrases that messages share: counts with a noun, lists of names, suggestions for a misspelled name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def counted(count: int, noun: str, plural: str = "") -> str:
    """``1 test``, ``2 tests``; ``plural`` is for nouns that need more than an s."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def listed(names: Sequence[str], *, most: int, separator: str = ", ", last: str = " and ") -> str:
    """``a, b and 3 more``: at most so many names, and the number of others."""
    more = f"{last}{len(names) - most} more" if len(names) > most else ""
    return separator.join(names[:most]) + more


def did_you_mean(text: str, known: Iterable[str], *, otherwise: str = "choose from") -> str:
    """``did you mean 'torch'?``, or ``otherwise`` and all known names if none is similar."""
    names = list(known)
    near = difflib.get_close_matches(text, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"{otherwise}: {', '.join(names)}"
