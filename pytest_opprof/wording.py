"""What messages say alike: counts with their noun, lists of names, the names that a user may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def counted(count: int, noun: str, plural: str = "") -> str:
    """``1 test``, ``2 tests``.

    Args:
        plural: Several of them, where an s at the end is not enough.
    """
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def listed(names: Sequence[str], *, most: int, separator: str = ", ", last: str = " and ") -> str:
    """``a, b and 3 more``: so many names at most, and how many others there are."""
    more = f"{last}{len(names) - most} more" if len(names) > most else ""
    return separator.join(names[:most]) + more


def did_you_mean(text: str, known: Iterable[str], *, otherwise: str = "choose from") -> str:
    """``did you mean 'torch'?``, or all known names behind ``otherwise`` where none is near."""
    names = list(known)
    near = difflib.get_close_matches(text, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"{otherwise}: {', '.join(names)}"
