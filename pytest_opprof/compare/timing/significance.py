"""Tests of significance for few, skewed samples: exact, and corrected for their number.

One sample is one process. Its steps share a heap layout, a hash seed and a moment, so they are not separate
samples (DESIGN's research: 30 steps of one process a side call equal code different most of the time).
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

# The time of an exact p grows with the fourth power of this; here it takes a twentieth of a second.
_MOST_COUNTED: Final = 80


def p_of_rise(base: Sequence[int], head: Sequence[int]) -> float:
    """How likely values as high as ``head`` are if both sides are alike: the one-sided p.

    Mann and Whitney's test (1947) as a permutation test of rank sums. Equal values have their mean rank, and
    the actual ranks are permuted: exact with ties too, unlike tables of U. Of more than 80 values it is the
    normal approximation (`_normal_share_from`). Each value is that of a process.
    """
    ranks = _doubled_midranks((*base, *head))
    share_from = _share_from if len(ranks) <= _MOST_COUNTED else _normal_share_from
    return share_from(tuple(sorted(ranks)), len(head), sum(ranks[len(base) :]))


def p_of_rise_of_fast(base: Sequence[int], head: Sequence[int]) -> float:
    """The same for the fast processes: all values above both sides' common median count as equal.

    Processes of equal code differ by their memory layout and their neighbours: most are about as fast as each
    other, some are slower by a third, by chance more often on one side. The ranks among the slow ones say
    nothing about the code. Also exact, because ranks with ties are permuted too.
    """
    both = sorted((*base, *head))
    at_most = both[(len(both) - 1) // 2]
    slow = both[-1]
    before, now = ([time if time <= at_most else slow for time in side] for side in (base, head))
    return p_of_rise(before, now)


def combined_p(p_values: Sequence[float]) -> float:
    """The joint p of several rounds of fresh processes: Fisher's method (1925).

    Twice the sum of the negative logarithms is chi-squared, with two degrees of freedom a round.
    """
    evidence = -sum(map(math.log, p_values))
    terms = (evidence**power / math.factorial(power) for power in range(len(p_values)))
    return math.exp(-evidence) * sum(terms)


def smallest_p(base: int, head: int) -> float:
    """The p of `p_of_rise_of_fast` if all of one side are above all of the other.

    If the higher side is the smaller one, some of the other are among the slow half too.
    """
    fewer, both = min(base, head), base + head
    return math.comb(both // 2, fewer) / math.comb(both, fewer)


def processes_needed(hypotheses: int, *, rate: float) -> int:
    """The processes a side needed to find one of so many hypotheses at all."""
    count = 1
    while smallest_p(count, count) > rate / max(hypotheses, 1):
        count += 1
    return count


def discoveries(p_values: Sequence[float], *, rate: float) -> list[bool]:
    """Which hypotheses to reject so that on average at most a share ``rate`` of them is wrong.

    Benjamini and Hochberg's procedure (1995): the largest k for which the k-th smallest p is at most
    ``k * rate / n``. It holds if the tests are independent or depend positively, as ops on one machine do
    (Benjamini and Yekutieli, 2001).
    """
    ordered = sorted(p_values)
    last = max(
        (p for rank, p in enumerate(ordered, start=1) if p <= rank * rate / len(ordered)), default=-1.0
    )
    return [p <= last for p in p_values]


def _doubled_midranks(values: Sequence[int]) -> list[int]:
    """Twice each value's rank, so that the mean rank of equal ones is an integer."""
    below = 0
    ranks = {}
    for value, count in sorted(Counter(values).items()):
        ranks[value] = 2 * below + count + 1
        below += count
    return [ranks[value] for value in values]


@functools.lru_cache(maxsize=256)
def _share_from(ranks: tuple[int, ...], size: int, least: int) -> float:
    """The share of all choices of ``size`` ranks whose sum is ``least`` or more.

    ``ways[k]`` counts the choices of k ranks by their sum, each count in a field of the bits of one integer:
    adding a rank to all of them is a shift, and no field overflows into the next.
    """
    field = len(ranks) + 1  # no count is over 2 ** len(ranks)
    ways = [1] + [0] * size
    for taken, rank in enumerate(ranks, start=1):
        for chosen in range(min(taken, size), 0, -1):
            ways[chosen] += ways[chosen - 1] << (rank * field)
    tail, found, mask = ways[size] >> (least * field), 0, (1 << field) - 1
    while tail:
        found += tail & mask
        tail >>= field
    return found / math.comb(len(ranks), size)


def _normal_share_from(ranks: tuple[int, ...], size: int, least: int) -> float:
    """About `_share_from`: the normal approximation with the variance of these ranks, ties included.

    E. L. Lehmann, Nonparametrics (1975), sections 1.3 and 1.4, corrected for continuity by half a rank. For
    twice 41 values it is off by 0.001 at most, and by 35 % of p down to 0.0001. A p below 0.001 is too large:
    it finds less, and raises no more false alarms.
    """
    count = len(ranks)
    mean = sum(ranks) / count
    squares = sum((rank - mean) ** 2 for rank in ranks)
    if not squares:
        return 1.0
    deviation = math.sqrt(size * (count - size) / (count * (count - 1)) * squares)
    return math.erfc((least - 1 - size * mean) / deviation / math.sqrt(2)) / 2
