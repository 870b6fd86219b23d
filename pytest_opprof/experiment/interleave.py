"""The order in which both sides' processes run, so that drift affects both alike."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

BLOCK = 4
# The largest valid PYTHONHASHSEED.
_MOST_HASH_SEED = 4_294_967_295


class Side(StrEnum):
    """One side of a comparison."""

    BASE = "base"
    HEAD = "head"

    @property
    def other(self) -> Side:
        """The one it is compared with."""
        return Side.HEAD if self is Side.BASE else Side.BASE


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One process to run."""

    index: int  # its place among all processes, from 0
    side: Side
    # Its PYTHONHASHSEED. The order of sets may cost time, so the k-th processes of both sides share a seed.
    # One seed for all would give the same code in two folders two fixed layouts in memory, and times that
    # differ by 3 %.
    hash_seed: int


def turns(processes: int, *, seed: int) -> tuple[Turn, ...]:
    """Order so many processes a side in blocks of four: A B B A, where chance decides which side is A.

    Within a block a steady drift, such as a processor that warms up, adds the same to both sides. Chance
    keeps a drift with the blocks' own period from favouring one. The same seed gives the same order, and more
    processes begin with the order of fewer.
    """
    # For an order, not for a secret.
    order, hashes = random.Random(seed), random.Random(f"hash seeds of {seed}")  # noqa: S311
    hash_seeds = [hashes.randint(1, _MOST_HASH_SEED) for _ in range(processes)]
    sides: list[Side] = []
    while len(sides) < 2 * processes:
        first = order.choice(list(Side))
        sides += [first, first.other, first.other, first][: 2 * processes - len(sides)]
    left = {side: iter(hash_seeds) for side in Side}
    return tuple(Turn(index=at, side=side, hash_seed=next(left[side])) for at, side in enumerate(sides))
