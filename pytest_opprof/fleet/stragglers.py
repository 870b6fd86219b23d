"""Find the ranks that others wait for.

A collective ends on all of its ranks at once, so its ends align their clocks. Its starts show who came late.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

FLOOR_NS: Final = 500_000  # lateness per step
FALSE_ALARMS: Final = 0.001
FEWEST_RANKS: Final = 8
_MAD_TO_SIGMA: Final = 1.4826
_LEAST_SIGMA_NS: Final = 1_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """A rank that is late beyond chance."""

    rank: int
    lateness_ns: float
    q: float


def late_ranks(lateness: Mapping[int, Sequence[float]]) -> list[Late]:
    """The ranks that are late in every step, by more than ranks differ from each other.

    Lateness is, for each step of a rank, the nanoseconds after the median rank. It is judged against the
    spread of all ranks (median and MAD, which one straggler does not move). Benjamini and Hochberg's
    procedure bounds the false alarms among the named ranks. A floor leaves out lateness that is certain but
    too short to matter.
    """
    scores = {rank: median(steps) for rank, steps in lateness.items() if steps}
    if len(scores) < FEWEST_RANKS:
        return []
    middle = median(scores.values())
    spread = median(abs(score - middle) for score in scores.values()) * _MAD_TO_SIGMA
    sigma = max(spread, _LEAST_SIGMA_NS)
    # The chance of this lateness or more, under a normal distribution.
    chances = sorted(
        (0.5 * math.erfc((score - middle) / sigma / math.sqrt(2)), rank) for rank, score in scores.items()
    )
    named: list[Late] = []
    q = 1.0
    for place in range(len(chances), 0, -1):
        chance, rank = chances[place - 1]
        q = min(q, chance * len(chances) / place)
        late = scores[rank] - middle
        if q <= FALSE_ALARMS and late >= FLOOR_NS and min(lateness[rank]) > 0:
            named.append(Late(rank=rank, lateness_ns=late, q=q))
    return sorted(named, key=lambda one: -one.lateness_ns)
