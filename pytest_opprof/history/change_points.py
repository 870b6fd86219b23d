"""Find where the level of a noisy series shifts: penalized change points, by ruptures.

The method is that of R. Killick, P. Fearnhead and I. A. Eckley, "Optimal detection of changepoints with a
linear computational cost" (2012): the segmentation with the least squared error plus a penalty per change
point. We use logarithms, because noise and regressions are in proportion to times, in units of the series'
own noise.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

# More points take seconds, and an old change does not matter.
MOST_POINTS = 2_000
# The fewest runs of a level: a shorter one is an excursion of the machine.
_SHORTEST = 5
# The least shift, however significant a smaller one is: the same code on the same machine drifts by as much.
_LEAST_SHIFT = 0.03
# A change point costs this times log(n). Schwarz's criterion is 2 for independent noise; a machine's is not.
_PENALTY = 6.0
# The values in a running median, and how far one may be from it, in standard deviations of the noise.
_WINDOW = 11
_MOST_SIGMA = 3.0
# The median absolute deviation of a normal distribution, in standard deviations.
_MAD_IN_SIGMA = 0.6745


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifts:
    """Where the level shifts."""

    at: tuple[int, ...] = ()  # the first index of each new level
    problem: str = ""  # why shifts could not be looked for; empty if they were


def shifts(values: Sequence[float]) -> Shifts:
    """Find the change points in the last `MOST_POINTS` values of a series: times or sizes, none below 0."""
    try:
        import ruptures  # noqa: PLC0415 - of the extra [stats], and slow to import
    except ImportError:
        return Shifts(problem="change points of times need ruptures: pip install 'pytest-opprof[stats]'")
    skipped = max(len(values) - MOST_POINTS, 0)
    logs = [math.log(value + 1) for value in values[skipped:]]
    if len(logs) < 2 * _SHORTEST:
        return Shifts()
    noise = _noise(logs)
    if noise == 0:
        noise = _LEAST_SHIFT / _PENALTY  # a series that repeats itself: only the size of a shift counts
    tame = _without_spikes(logs, noise=noise)
    import numpy as np  # noqa: PLC0415 - ruptures brings it

    signal = np.asarray(tame).reshape(-1, 1) / noise
    detector = ruptures.KernelCPD(kernel="linear", min_size=_SHORTEST).fit(signal)
    found = detector.predict(pen=_PENALTY * math.log(len(logs)))[:-1]
    return Shifts(at=tuple(skipped + int(at) for at in _large_enough(logs, found)))


def _noise(logs: Sequence[float]) -> float:
    """The standard deviation around the level, from differences of neighbours, few of which span a shift."""
    steps = [after - before for before, after in itertools.pairwise(logs)]
    return statistics.median(map(abs, steps)) / _MAD_IN_SIGMA / math.sqrt(2)


def _without_spikes(logs: Sequence[float], *, noise: float) -> list[float]:
    """Limit how far values are from a running median: an outlier counts no more than a noisy run.

    A running median does not blur edges, so it bends no level.
    """
    reach = _WINDOW // 2
    around = [statistics.median(logs[max(at - reach, 0) : at + reach + 1]) for at in range(len(logs))]
    most = _MOST_SIGMA * noise
    return [min(max(value, middle - most), middle + most) for value, middle in zip(logs, around, strict=True)]


def _large_enough(logs: Sequence[float], found: Sequence[int]) -> list[int]:
    """The change points where the medians of the levels differ by the least shift or more."""
    kept: list[int] = []
    for at, end in zip(found, [*found, len(logs)][1:], strict=True):
        before = statistics.median(logs[kept[-1] if kept else 0 : at])
        if abs(statistics.median(logs[at:end]) - before) >= math.log1p(_LEAST_SHIFT):
            kept.append(at)
    return kept
