"""The first commit at which a number is another: a binary search that passes over what cannot be measured."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A metric at a commit.

    Attributes:
        value: In each step; None where it could not be measured.
        reason: Why not, in a line; empty where it was.
        error: All that its processes printed about that.
    """

    value: int | None
    reason: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where the number changed.

    Attributes:
        before: The last commit that is known to have the good value.
        suspects: The commits after it, up to the first that is known to have another, oldest first. One
            alone is the answer; of several, all but the last could not be measured.
    """

    before: str
    suspects: tuple[str, ...]


def first_change(commits: Sequence[str], measure: Callable[[str], Measured], *, good: int) -> Found:
    """Search where a number is no longer ``good``.

    A number that changes more than once has several such places: this finds one of them, and the commit
    before it has the good value in any case.

    Args:
        commits: Oldest first; the first has the good value and the last another.
        measure: Says the number of a commit between them; it is asked once for each.
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
    """The place nearest to the middle between two that can still be measured; None if there is none."""
    left = [at for at in range(low + 1, high) if at not in skipped]
    return min(left, key=lambda at: abs(2 * at - low - high), default=None)
