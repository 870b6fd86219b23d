"""A binary search for a commit that changed a number; commits that cannot be measured are skipped."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A metric at a commit.

    Attributes:
        value: In each step; None if it could not be measured.
        reason: Why not, in a line; empty if it was.
        error: The whole output of the process that failed.
    """

    value: int | None
    reason: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where the number changed.

    Attributes:
        before: The last commit known to have the good value.
        suspects: The commits after it, up to the first known to have another value, oldest first. One alone
            is the answer; of several, only the last could be measured.
    """

    before: str
    suspects: tuple[str, ...]


def first_change(commits: Sequence[str], measure: Callable[[str], Measured], *, good: int) -> Found:
    """Find a commit at which a number is no longer ``good``.

    If it changes more than once, this finds one of the changes from the good value.

    Args:
        commits: Oldest first; the first has the good value and the last another.
        measure: Measures a commit between them; called at most once for each.
    """
    low, high = 0, len(commits) - 1
    skipped: set[int] = set()
    while (at := _middle(low, high, skipped)) is not None:
        value = measure(commits[at]).value
        if value is None:
            skipped.add(at)
        elif value == good:
            low = at
        else:
            high = at
    return Found(before=commits[low], suspects=tuple(commits[low + 1 : high + 1]))


def _middle(low: int, high: int, skipped: Collection[int]) -> int | None:
    """The index nearest to the middle that can still be measured; None if there is none."""
    left = [at for at in range(low + 1, high) if at not in skipped]
    return min(left, key=lambda at: abs(2 * at - low - high), default=None)
