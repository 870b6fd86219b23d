"""Wait for an undisturbed moment before a step, and check it afterwards."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from pytest_opprof.capture.speed import Pace, Speed
from pytest_opprof.profiler.recorder import CycleRecorder


class Moment(enum.Enum):
    """What the machine did at the ends of a step."""

    USUAL = enum.auto()
    DISTURBED = enum.auto()
    BOOSTED = enum.auto()


class Around(NamedTuple):
    """What the machine did around a step.

    Attributes:
        moment: In words.
        probe_ns: A probe's time at the slower of its ends.
    """

    moment: Moment
    probe_ns: int


class QuietMachine:
    """Waits until nothing slows the machine down, for some steps of one test.

    Args:
        budget_ns: The time for all waiting and all additional steps.
        clock: Nanoseconds.
    """

    def __init__(
        self, speed: Speed, *, budget_ns: int, clock: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self._speed = speed
        self._left_ns = budget_ns
        self._clock = clock
        self._before_ns = 0

    @property
    def has_time(self) -> bool:
        """Whether budget is left."""
        return self._left_ns > 0

    def spend(self, ns: int) -> None:
        """Subtract the time of additional steps from the budget."""
        self._left_ns -= ns

    def wait(self) -> None:
        """Return in an undisturbed moment, or when the budget is spent."""
        began_ns = now_ns = self._clock()
        self._before_ns = self._speed.probe_ns()
        while self._speed.pace(self._before_ns) is Pace.SLOW and now_ns - began_ns < self._left_ns:
            self._before_ns = self._speed.probe_ns()
            now_ns = self._clock()
        self.spend(now_ns - began_ns)

    def since(self) -> Around:
        """How the moment went on in which the last `wait` ended."""
        ends_ns = self._before_ns, self._speed.probe_ns()
        paces = {self._speed.pace(end_ns) for end_ns in ends_ns}
        if Pace.FAST in paces:
            return Around(Moment.BOOSTED, max(ends_ns))
        return Around(Moment.DISTURBED if Pace.SLOW in paces else Moment.USUAL, max(ends_ns))


class QuietRecorder(CycleRecorder):
    """Begins each recorded step in an undisturbed moment."""

    def __init__(self, *arguments: Any, quiet: QuietMachine, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._quiet = quiet

    def begin_step(self, number: int) -> None:
        """Note that a step begins, once the machine is quiet."""
        self._quiet.wait()
        super().begin_step(number)
