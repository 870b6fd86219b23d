"""How fast this machine computes just now, and how fast it does as a rule."""

from __future__ import annotations

import enum
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Self

from pytest_opprof.capture.native import lib

# An A/B tells its processes the machine's usual speed by this, so that all of them mean the same.
USUAL_NS: Final = "OPPROF_USUAL_PROBE_NS"
_BIN: Final = 0.01  # of the value
_LASTING: Final = 0.02  # of all probes
_TOLERANCE: Final = 0.02
_PROBES: Final = 10_000


def probe_ns() -> int:
    """Nanoseconds that a fixed amount of integer work takes just now (`native/src/core/speed.c`)."""
    took: int = lib.op_speed_probe()
    return took


def usual_ns(probes: Iterable[int]) -> int:
    """The fastest speed that lasts: the middle of the fastest bin of 1 % that holds 2 % of the probes.

    Not the least: a processor boosts its clock now and then. Nor the most common: a neighbour may be there
    more often than not, and slow down all probes by nearly the same share.

    Args:
        probes: At least one.
    """
    bins: dict[int, list[int]] = {}
    ranked = sorted(probes)
    for probe in ranked:
        bins.setdefault(round(math.log(max(probe, 1)) / _BIN), []).append(probe)
    lasting = (key for key in sorted(bins) if len(bins[key]) >= len(ranked) * _LASTING)
    fullest = max(bins, key=lambda key: len(bins[key]))
    key = next(lasting, fullest)
    # A peak on the border of two bins is one peak all the same.
    found = bins[key] + bins.get(key + 1, [])
    return found[len(found) // 2]


def probes() -> Iterator[int]:
    """What a third of a second shows of this machine's speed, nanoseconds."""
    return (probe_ns() for _ in range(_PROBES))


class Pace(enum.Enum):
    """How fast the machine is."""

    USUAL = enum.auto()
    SLOW = enum.auto()
    FAST = enum.auto()


class Speed:
    """Tells whether the machine computes as fast as it usually does.

    Args:
        usual: What a probe takes as a rule, in nanoseconds.
    """

    def __init__(self, usual: int, *, probe: Callable[[], int] = probe_ns) -> None:
        self._least = usual * (1 - _TOLERANCE)
        self._most = usual * (1 + _TOLERANCE)
        self._probe = probe

    @classmethod
    def of_process(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """By what an A/B says is usual, else by what this process finds."""
        told = environment.get(USUAL_NS, "")
        return cls(int(told) if told.isdecimal() else usual_ns(probes()))

    def probe_ns(self) -> int:
        """What a probe takes now."""
        return self._probe()

    def pace(self, probe_ns: int) -> Pace:
        """How fast the machine was when a probe took so long, beside its usual speed."""
        if probe_ns > self._most:
            return Pace.SLOW
        return Pace.FAST if probe_ns < self._least else Pace.USUAL
