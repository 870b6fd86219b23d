"""Rank the events worth making faster: those during which the queue of a device ran empty."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from pytest_opprof.analysis.intervals import Interval

_T = TypeVar("_T")

_FULL: Final = 4  # kernels in a queue that a host keeps filled
_SELF_TIME_WEIGHT: Final = 0.6


def index_of_first_match(
    seq: Sequence[_T], predicate: Callable[[_T], object], start: int = 0, end: int | None = None
) -> int | None:
    """The index of the first element that matches, from `start` up to `end`; None if there is none."""
    stop = len(seq) if end is None else min(end, len(seq))
    return next((index for index in range(start, stop) if predicate(seq[index])), None)


def argmax(
    seq: Sequence[_T],
    key: Callable[[_T], object] = lambda element: element,
    start: int = 0,
    end: int | None = None,
) -> int | None:
    """The index of the first largest element, from `start` up to `end`; None if there is none."""
    places = range(*slice(start, end).indices(len(seq)))
    return max(places, key=lambda index: key(seq[index]), default=None)  # type: ignore[arg-type, return-value]  # what compares is the caller's


def falling_phases(points: Sequence[Interval]) -> list[Interval]:
    """The intervals from each peak of a filled queue to the moment at which it has run empty.

    Args:
        points: Launches and kernels with the depth of the queue, in time order. Of several deepest points,
            the last one is the peak.
    """
    phases = []
    for begin, empty in _filled_stretches([point.queue_depth for point in points]):
        peak = max(range(begin, empty), key=lambda index: (points[index].queue_depth, index))
        if points[peak].queue_depth >= _FULL:
            phases.append(Interval(points[peak].start, points[empty].start))
    return phases


def _filled_stretches(depths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The points at which the queue fills, each with the point at which it is empty again."""
    begin: int | None = None
    for index, depth in enumerate(depths):
        if depth > 0 and begin is None:
            begin = index
        elif depth == 0 and begin is not None:
            yield begin, index
            begin = None


def scores(idle_fractions: Sequence[float], self_times: Sequence[float]) -> list[float]:
    """How much each event stands out by its idle share, and with less weight by its self time."""
    return [
        idle + _SELF_TIME_WEIGHT * own
        for idle, own in zip(_standardized(idle_fractions), _standardized(self_times), strict=True)
    ]


def _standardized(values: Sequence[float]) -> list[float]:
    """Values in standard deviations from their mean; 0 if all are equal or there is only one."""
    if len(values) < 2:  # noqa: PLR2004  # a deviation needs two
        return [0.0] * len(values)
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return [(value - mean) / deviation if deviation else 0.0 for value in values]
