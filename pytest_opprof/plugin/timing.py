"""Time a test's steps from outside, without a profiler, and wait for undisturbed moments to do so."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

from pytest_opprof.capture.speed import Pace, Speed
from pytest_opprof.plugin.calls import Calls, is_of_the_call
from pytest_opprof.plugin.options import MOST_TIMED_STEPS
from pytest_opprof.profiler.recorder import CycleRecorder
from pytest_opprof.results.run import ENOUGH_UNDISTURBED


class QuietMachine:
    """Waits until nothing slows the machine down, for some steps of one test, which share the budget."""

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

    def since(self) -> tuple[Pace, int]:
        """How the moment went on in which the last `wait` ended: its pace, and its slower probe's time."""
        ends_ns = self._before_ns, self._speed.probe_ns()
        paces = {self._speed.pace(end_ns) for end_ns in ends_ns}
        pace = next((pace for pace in (Pace.FAST, Pace.SLOW) if pace in paces), Pace.USUAL)
        return pace, max(ends_ns)


class QuietRecorder(CycleRecorder):
    """Begins each recorded step in an undisturbed moment."""

    def __init__(self, *arguments: Any, quiet: QuietMachine, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._quiet = quiet

    def begin_step(self, number: int) -> None:
        """Note that a step begins, once the machine is quiet."""
        self._quiet.wait()
        super().begin_step(number)


class _Step(NamedTuple):
    """A timed step."""

    took_ns: int
    pace: Pace = Pace.USUAL  # the machine's at its ends: slow if one was disturbed, fast if one was boosted
    probe_ns: int = 0  # a probe's time at the slower of its ends; 0 without probes


class TimedSteps:
    """Times so many steps of a test after those of its schedule.

    A garbage collection before the first removes the profiled steps' garbage; later collections come as they
    do for the test's users.

    If it knows a quiet machine, more steps are timed on a disturbed one, until enough were undisturbed or the
    time for that is up. The speed before and after a step decides, not its own time: slower code has as many
    undisturbed steps as before.
    """

    def __init__(self, wanted: int, *, quiet: QuietMachine | None = None) -> None:
        self.wanted = wanted
        self.reason = ""  # why there are fewer than wanted
        self.is_open = False  # the test steps itself, and its next steps are timed
        self.has_failed = False  # the last call raised
        self._quiet = quiet
        self._steps: list[_Step] = []
        self._undisturbed = 0
        self._began_ns = 0

    @property
    def durations_ns(self) -> list[int]:
        """Of the steps so far, in order, except those on a faster machine than usual."""
        return [step.took_ns for step in self._kept]

    @property
    def disturbed(self) -> int:
        """How many of `durations_ns` began or ended while the machine was slower than usual."""
        return sum(step.pace is Pace.SLOW for step in self._kept)

    @property
    def probe_ns(self) -> int:
        """A probe's time beside the slowest of the ten calmest steps; 0 without probes."""
        calmest = sorted(step.probe_ns for step in self._kept)[:ENOUGH_UNDISTURBED]
        return max(calmest, default=0)

    @property
    def planned(self) -> int:
        """How many of the wanted steps the test took."""
        return min(self.wanted, len(self._steps))

    def calls(self) -> Calls:
        """What to hold open around each further call of a test that is called once per step."""
        if self.wanted:
            gc.collect()
        while self._goes_on:
            yield self

    def failed(self, error: BaseException) -> None:
        """A call raised: such a test has no times."""
        self.has_failed = True
        if len(self._steps) >= self.wanted:
            return  # it can be called as often as requested
        call = f"timed call {len(self._steps) + 1} raised {type(error).__name__}"
        self.reason = f"cannot be called so often: {call}. Build the state inside the test"
        self._steps.clear()

    def begin(self) -> None:
        """A test that steps itself has finished its schedule; its rest is timed."""
        self.is_open = True
        gc.collect()
        self.begin_step()

    def step(self) -> None:
        """A test that steps itself has finished a step."""
        self.end_step()
        self.is_open = self._goes_on
        if self.is_open:
            self.begin_step()

    def end(self) -> None:
        """A test that steps itself is over."""
        self.is_open = False
        if self.wanted and not self._steps:
            self.reason = (
                "the test ended with its schedule, so no steps were left to time: call opprof.step() more "
                "often, or give the marker a shorter schedule"
            )

    def begin_step(self) -> None:
        """A step begins, once the machine is quiet."""
        if self._quiet is not None:
            self._quiet.wait()
        self._began_ns = time.perf_counter_ns()

    def end_step(self) -> None:
        """The step is over."""
        took_ns = time.perf_counter_ns() - self._began_ns
        step = _Step(took_ns)
        if self._quiet is not None:
            step = _Step(took_ns, *self._quiet.since())
            if len(self._steps) >= self.wanted:
                self._quiet.spend(took_ns)
        self._undisturbed += step.pace is not Pace.SLOW
        self._steps.append(step)

    # Not a generator, which would take a part of the measured time.

    def __enter__(self) -> None:
        self.begin_step()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if error is None:
            self.end_step()
        elif is_of_the_call(error):
            self.failed(error)
            return True
        return False

    @property
    def _goes_on(self) -> bool:
        if self.has_failed or len(self._steps) < self.wanted:
            return not self.has_failed
        return (
            self._quiet is not None
            and self._quiet.has_time
            and self._undisturbed < ENOUGH_UNDISTURBED
            and self.wanted > 0
            and len(self._steps) < MOST_TIMED_STEPS
        )

    @property
    def _kept(self) -> list[_Step]:
        usual = [step for step in self._steps if step.pace is not Pace.FAST]
        # If most steps were faster than usual, the usual speed was wrong: keep them.
        return usual if len(usual) >= min(ENOUGH_UNDISTURBED, self.wanted) else self._steps
