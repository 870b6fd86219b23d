"""Time a test's steps from outside, without a profiler."""

from __future__ import annotations

import gc
import time
from types import TracebackType
from typing import NamedTuple

from pytest_opprof.plugin.calls import Calls, is_of_the_call
from pytest_opprof.plugin.options import MOST_TIMED_STEPS
from pytest_opprof.plugin.quiet_machine import Around, Moment, QuietMachine
from pytest_opprof.results.run import ENOUGH_UNDISTURBED

_UNASKED = Around(Moment.USUAL, 0)


class _Step(NamedTuple):
    took_ns: int
    around: Around


class TimedSteps:
    """Times steps of a test after those of its schedule.

    A garbage collection before the first removes the profiled steps' garbage; later collections come as they
    do for the test's users.

    On a disturbed machine more steps are timed, until enough were undisturbed or the time for that is up. The
    speed before and after a step decides, not its own time: slower code has as many undisturbed steps as
    before.

    Args:
        wanted: How many steps to time; 0 for none.
        quiet: Knows the machine's speed; None to time exactly `wanted` steps.

    Attributes:
        reason: Why there are fewer than wanted; "" if there are not.
        is_open: The test steps itself, and its next steps are timed.
        has_failed: The last call raised.
    """

    def __init__(self, wanted: int, *, quiet: QuietMachine | None = None) -> None:
        self.wanted = wanted
        self.reason = ""
        self.is_open = False
        self.has_failed = False
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
        return sum(step.around.moment is Moment.DISTURBED for step in self._kept)

    @property
    def probe_ns(self) -> int:
        """A probe's time beside the slowest of the ten calmest steps; 0 without probes."""
        calmest = sorted(step.around.probe_ns for step in self._kept)[:ENOUGH_UNDISTURBED]
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
        around = _UNASKED
        if self._quiet is not None:
            around = self._quiet.since()
            if len(self._steps) >= self.wanted:
                self._quiet.spend(took_ns)
        self._undisturbed += around.moment is not Moment.DISTURBED
        self._steps.append(_Step(took_ns, around))

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
        usual = [step for step in self._steps if step.around.moment is not Moment.BOOSTED]
        # If most steps were faster than usual, the usual speed was wrong: keep them.
        return usual if len(usual) >= min(ENOUGH_UNDISTURBED, self.wanted) else self._steps
