"""The times that pytest-benchmark keeps, as samples in nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pytest_opprof.results.samples import Samples
from pytest_opprof.units import NS_IN_S

_MOST_VALUES: Final = 1_000  # of one list in a document


def samples_of_rounds(rounds_s: Sequence[float]) -> Samples:
    """One duration for each round, which is the mean of the round's calls.

    Args:
        rounds_s: Seconds, one value for each round.
    """
    samples = Samples.of(round(duration * NS_IN_S) for duration in rounds_s)
    return samples if len(rounds_s) <= _MOST_VALUES else samples.summarized()


def samples_of_statistics(*, rounds: int, least_s: float, most_s: float, mean_s: float) -> Samples:
    """The same from what is left of rounds that were not kept: seconds."""
    low, high = round(least_s * NS_IN_S), round(most_s * NS_IN_S)
    # Each is rounded by itself, and a sum that no such values have would be refused.
    total = min(max(round(mean_s * rounds * NS_IN_S), low * rounds), high * rounds)
    return Samples(steps=rounds, total=total, low=low, high=high)
