"""Steps without a profiler, timed from outside: what a test takes when nobody looks at its ops."""

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
    """Times steps of a test after those that its schedule takes.

    A garbage collection before the first of them takes away what the profiled steps left; from there on
    collections come when they come, as they do to the test's users.

    Where others slow down the machine, more steps than wanted are timed, until enough of them were
    undisturbed or the time for that is up. A step is known by the speed before and after it, and not by what
    it took: code that became slower has as many undisturbed steps as it had before.

    Args:
        wanted: How many steps to time; 0 for none.
        quiet: Knows the machine's speed; None times just what is wanted, and does not ask.

    Attributes:
        reason: Why there are fewer than wanted; "" where nothing stood in the way.
        is_open: The test steps itself, and its next steps are timed.
        has_failed: A call raised, and was the last.
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
        """Of the steps so far, in order; without those in which the machine was faster than usual."""
        return [step.took_ns for step in self._kept]

    @property
    def disturbed(self) -> int:
        """How many of `durations_ns` began or ended while the machine was slower than usual."""
        return sum(step.around.moment is Moment.DISTURBED for step in self._kept)

    @property
    def probe_ns(self) -> int:
        """What a probe took beside the slowest of the ten calmest steps; 0 where nobody asked."""
        calmest = sorted(step.around.probe_ns for step in self._kept)[:ENOUGH_UNDISTURBED]
        return max(calmest, default=0)

    @property
    def planned(self) -> int:
        """How many of the steps that were wanted the test took."""
        return min(self.wanted, len(self._steps))

    def calls(self) -> Calls:
        """What to hold open around each further call of a test that is called once per step."""
        if self.wanted:
            gc.collect()
        while self._goes_on:
            yield self

    def failed(self, error: BaseException) -> None:
        """A call raised: a test that cannot be called so often has no times."""
        self.has_failed = True
        if len(self._steps) >= self.wanted:
            return  # it can be called as often as was asked for
        call = f"timed call {len(self._steps) + 1} raised {type(error).__name__}"
        self.reason = f"cannot be called so often: {call}. Build the state inside the test"
        self._steps.clear()

    def begin(self) -> None:
        """A test that steps itself has finished its schedule; what it still does is timed."""
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
                "the test ended with its schedule: go on and call opprof.step(), or give the marker a "
                "shorter schedule"
            )

    def begin_step(self) -> None:
        """A step begins, as soon as nobody disturbs it."""
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

    # Around a call no generator: it would take a part of the time that is measured.

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
        # A machine that is mostly faster than it was said to be is as it is.
        return usual if len(usual) >= min(ENOUGH_UNDISTURBED, self.wanted) else self._steps
