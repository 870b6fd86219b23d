"""Steps without a profiler, timed from outside: what a test takes when nobody looks at its ops."""

from __future__ import annotations

import gc
import time
from types import TracebackType

from _pytest.outcomes import Exit, OutcomeException

from pytest_opprof.plugin.calls import Calls


class TimedSteps:
    """Times steps of a test after those that its schedule takes.

    A garbage collection before the first of them takes away what the profiled steps left; from there on
    collections come when they come, as they do to the test's users.

    Args:
        wanted: How many steps to time; 0 for none.

    Attributes:
        durations_ns: Of the steps so far, in order.
        reason: Why there are fewer than wanted; "" where nothing stood in the way.
        is_open: The test steps itself, and its next steps are timed.
    """

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.durations_ns: list[int] = []
        self.reason = ""
        self.is_open = False
        self._began_ns = 0

    def calls(self) -> Calls:
        """What to hold open around each further call of a test that is called once per step."""
        if self.wanted:
            gc.collect()
        while len(self.durations_ns) < self.wanted and not self.reason:
            yield _TimedCall(self)

    def failed(self, error: BaseException) -> None:
        """A call raised: a test that cannot be called so often has no times."""
        call = f"timed call {len(self.durations_ns) + 1} raised {type(error).__name__}"
        self.reason = f"cannot be called so often: {call}. Build the state inside the test"
        self.durations_ns.clear()

    def begin(self) -> None:
        """A test that steps itself has finished its schedule; what it still does is timed."""
        self.is_open = True
        gc.collect()
        self._began_ns = time.perf_counter_ns()

    def step(self) -> None:
        """A test that steps itself has finished a step."""
        ended_ns = time.perf_counter_ns()
        self.durations_ns.append(ended_ns - self._began_ns)
        self.is_open = len(self.durations_ns) < self.wanted
        self._began_ns = time.perf_counter_ns()

    def end(self) -> None:
        """A test that steps itself is over."""
        self.is_open = False
        if self.wanted and not self.durations_ns:
            self.reason = (
                "the test ended with its schedule: go on and call opprof.step(), or give the marker a "
                "shorter schedule"
            )


class _TimedCall:
    """Held open around a call. A class, as a generator would take a part of the time it measures."""

    __slots__ = ("_began_ns", "_steps")

    def __init__(self, steps: TimedSteps) -> None:
        self._steps = steps
        self._began_ns = 0

    def __enter__(self) -> None:
        self._began_ns = time.perf_counter_ns()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        ended_ns = time.perf_counter_ns()
        if error is None:
            self._steps.durations_ns.append(ended_ns - self._began_ns)
            return False
        if isinstance(error, Exit) or not isinstance(error, (Exception, OutcomeException, SystemExit)):
            return False
        self._steps.failed(error)
        return True
