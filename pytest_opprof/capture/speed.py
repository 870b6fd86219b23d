"""How fast this machine is now, and how fast it usually is."""

from __future__ import annotations

import enum
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Self

from pytest_opprof.capture.native import lib

# An A/B tells its processes the machine's usual speed in this variable, so that all use the same one.
USUAL_NS: Final = "OPPROF_USUAL_PROBE_NS"
_BIN: Final = 0.01  # of the value
_LASTING: Final = 0.02  # of all probes
_TOLERANCE: Final = 0.02
_PROBES: Final = 10_000


def probe_ns() -> int:
    """Nanoseconds that a fixed amount of integer work takes now (`native/src/core/speed.c`)."""
    took: int = lib.op_speed_probe()
    return took


def usual_ns(probes: Iterable[int]) -> int:
    """The fastest speed that lasts: the middle of the fastest bin of 1 % that holds 2 % of the probes.

    It is not the minimum, as processors boost their clock now and then, and not the most common value, as a
    neighbour may slow down most probes by nearly the same share.
    """
    bins: dict[int, list[int]] = {}
    ranked = sorted(probes)
    for probe in ranked:
        bins.setdefault(round(math.log(max(probe, 1)) / _BIN), []).append(probe)
    lasting = (key for key in sorted(bins) if len(bins[key]) >= len(ranked) * _LASTING)
    fullest = max(bins, key=lambda key: len(bins[key]))
    key = next(lasting, fullest)
    # A peak may lie on the border of two bins.
    found = bins[key] + bins.get(key + 1, [])
    return found[len(found) // 2]


def probes() -> Iterator[int]:
    """Probes of this machine's speed over a third of a second, nanoseconds each."""
    return (probe_ns() for _ in range(_PROBES))


class Pace(enum.Enum):
    """How fast the machine is."""

    USUAL = enum.auto()
    SLOW = enum.auto()
    FAST = enum.auto()


class Speed:
    """Tells whether the machine is as fast as usual.

    Args:
        usual: What a probe usually takes, in nanoseconds.
    """

    def __init__(self, usual: int, *, probe: Callable[[], int] = probe_ns) -> None:
        self._least = usual * (1 - _TOLERANCE)
        self._most = usual * (1 + _TOLERANCE)
        self._probe = probe

    @classmethod
    def of_process(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Take the usual speed from the A/B, else measure it here."""
        told = environment.get(USUAL_NS, "")
        return cls(int(told) if told.isdecimal() else usual_ns(probes()))

    def probe_ns(self) -> int:
        """What a probe takes now."""
        return self._probe()

    def pace(self, probe_ns: int) -> Pace:
        """How fast the machine was, compared to its usual speed, when a probe took this long."""
        if probe_ns > self._most:
            return Pace.SLOW
        return Pace.FAST if probe_ns < self._least else Pace.USUAL
