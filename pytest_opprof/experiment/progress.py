"""How far an experiment is, in a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pytest_opprof.units import Unit, format_quantity

_BAR: Final = 22
_S_IN_MIN: Final = 60
_S_IN_H: Final = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A round of an experiment, after some of its processes.

    Attributes:
        round: What it is for: "" for the first.
        done: Processes that are finished, those of an earlier start too.
        elapsed_s: Since this start of the round.
        left_s: Until the round ends, as far as its processes so far tell; None before the first.
        noise_ppm: By what share the base's processes differ from each other; None while that cannot be told.
    """

    round: str = ""
    done: int
    total: int
    elapsed_s: float
    left_s: float | None = None
    noise_ppm: int | None = None

    @property
    def text(self) -> str:
        """``11/24 processes · 00:41 elapsed · 00:48 left · noise floor so far 2.1 %``."""
        parts = [f"{self.done}/{self.total} processes", f"{_clock(self.elapsed_s)} elapsed"]
        if self.left_s is not None:
            parts.append(f"{_clock(self.left_s)} left")
        if self.noise_ppm is not None:
            parts.append(f"noise floor so far {format_quantity(self.noise_ppm, unit=Unit.PPM)}")
        return f"{f'{self.round}: ' if self.round else ''}{' · '.join(parts)}"


def bar(done: int, total: int) -> str:
    """The share that is done, drawn: ``[######................]``."""
    filled = _BAR * min(done, total) // total
    return f"[{'#' * filled}{'.' * (_BAR - filled)}]"


def _clock(seconds: float) -> str:
    """``00:41``, ``1:02:03``."""
    whole = round(seconds)
    minutes = f"{whole % _S_IN_H // _S_IN_MIN:02}:{whole % _S_IN_MIN:02}"
    return minutes if whole < _S_IN_H else f"{whole // _S_IN_H}:{minutes}"
