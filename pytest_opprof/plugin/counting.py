"""Calls whose bytecodes are counted, with nothing else recorded meanwhile."""

from __future__ import annotations

import gc
from types import TracebackType
from typing import Final

from _pytest.outcomes import Exit, OutcomeException

from pytest_opprof.capture.instructions import InstructionCounter, Instructions
from pytest_opprof.errors import CaptureUnavailableError
from pytest_opprof.metrics.instructions import INSTRUCTION_TOTALS
from pytest_opprof.plugin.calls import Calls
from pytest_opprof.results.run import TestResult

# Caches may fill in the first calls; what does not settle in so many varies.
_MOST_CALLS: Final = 4


class CountedCalls:
    """Counts the bytecodes of calls of a test after those that its schedule takes.

    Two calls in a row must agree, or one must say what is expected: then nothing varies. Garbage is collected
    before each, and not during it, as a collection runs finalizers at a moment that nobody chose.

    Args:
        is_wanted: Whether to count at all.
        expected: The totals of a certified baseline; None where there is none.

    Attributes:
        reason: Why nothing was counted; "" where nothing stood in the way.
    """

    def __init__(self, *, is_wanted: bool, expected: tuple[int, int] | None = None) -> None:
        self.is_wanted = is_wanted
        self.reason = ""
        self._expected = expected
        self._counter: InstructionCounter | None = None
        self._counts: list[Instructions] = []
        self._collects = False

    @property
    def counts(self) -> list[Instructions]:
        """One where the calls agree, else all of them; none where there is a reason."""
        if self.reason or not self._counts:
            return []
        return self._counts[-1:] if self._has_settled else self._counts

    @property
    def has_been_asked(self) -> bool:
        """Whether there is something to say: counts, or why there are none."""
        return bool(self.reason or self._counts)

    def calls(self) -> Calls:
        """What to hold open around each further call of a test that is called once per step."""
        if not self.is_wanted:
            return
        try:
            self._counter = InstructionCounter()
        except CaptureUnavailableError as error:
            self.reason = str(error)
        while not (self.reason or self._has_settled or len(self._counts) >= _MOST_CALLS):
            yield _CountedCall(self)

    def begin(self) -> None:
        """A call begins."""
        self._collects = gc.isenabled()
        gc.collect()
        gc.disable()
        assert self._counter is not None, "calls() made it"
        try:
            self._counter.start()
        except CaptureUnavailableError as error:
            self.reason = str(error)

    def end(self, error: BaseException | None) -> None:
        """It is over: what it ran counts, unless it raised."""
        if not self.reason:
            assert self._counter is not None, "calls() made it"
            counted = self._counter.stop()
            self.reason = counted.doubt
            self._counts.append(counted)
        if self._collects:
            gc.enable()
        if error is not None:
            self.reason = f"counted call {len(self._counts)} raised {type(error).__name__}"

    @property
    def _has_settled(self) -> bool:
        if not self._counts:
            return False
        last = self._counts[-1].totals
        return last == self._expected or (len(self._counts) > 1 and last == self._counts[-2].totals)


class _CountedCall:
    """Held open around a call."""

    __slots__ = ("_calls",)

    def __init__(self, calls: CountedCalls) -> None:
        self._calls = calls

    def __enter__(self) -> None:
        self._calls.begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        self._calls.end(error)
        is_own = isinstance(error, (Exception, OutcomeException, SystemExit))
        return is_own and not isinstance(error, Exit)


def certified_counts(test: TestResult) -> tuple[int, int] | None:
    """What a baseline's processes agreed on; None where they did not, or counted nothing."""
    project, libraries = (test.totals.get(metric.name) for metric in INSTRUCTION_TOTALS)
    if project is None or libraries is None or not (project.is_constant and libraries.is_constant):
        return None
    return project.low, libraries.low
