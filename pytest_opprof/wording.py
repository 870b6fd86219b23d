"""What messages say alike: counts with their noun, and the names that a user may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def counted(count: int, noun: str, plural: str = "") -> str:
    """``1 test``, ``2 tests``.

    Args:
        plural: Several of them, where an s at the end is not enough.
    """
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def did_you_mean(text: str, known: Iterable[str], *, otherwise: str = "choose from") -> str:
    """``did you mean 'torch'?``, or all known names behind ``otherwise`` where none is near."""
    names = list(known)
    near = difflib.get_close_matches(text, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"{otherwise}: {', '.join(names)}"
