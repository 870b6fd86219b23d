"""An experiment's progress in a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pytest_opprof.units import Unit, format_quantity

_BAR: Final = 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of an experiment's round."""

    round: str = ""  # its name; "" for the first
    done: int  # finished processes, including those before a resume
    total: int
    elapsed_s: float  # since this start of the round
    left_s: float | None = None  # estimated until the round's end; None before its first process
    # By what share the base's processes differ from each other; None if unknown yet.
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
    """A progress bar: ``[######................]``."""
    filled = _BAR * min(done, total) // total
    return f"[{'#' * filled}{'.' * (_BAR - filled)}]"


def _clock(seconds: float) -> str:
    """``00:41``, ``1:02:03``."""
    minutes, seconds_left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{f'{hours}:' if hours else ''}{minutes:02}:{seconds_left:02}"
