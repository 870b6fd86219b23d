"""The call phase of a test that benchmarks: the test runs once, and the timed function is stepped."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Required, TypedDict, Unpack

import pytest

from pytest_opprof.capture.call_sites import CALLERS, SITES
from pytest_opprof.capture.collector import Collector
from pytest_opprof.errors import CaptureBusyError
from pytest_opprof.plugin.benchmarks import Benchmarked, can_be_followed, followed
from pytest_opprof.plugin.calls import is_of_the_call
from pytest_opprof.plugin.marker import ProfileRequest
from pytest_opprof.plugin.seeds import Seeds
from pytest_opprof.plugin.stepping import Stepping
from pytest_opprof.plugin.timing import QuietMachine, TimedSteps


class Common(TypedDict, total=False):
    """The arguments of `Stepping` that a benchmark's measurement takes too."""

    sources: Required[frozenset[str]]
    fails: Callable[[Stepping], bool]
    timed: TimedSteps
    quiet: QuietMachine | None
    seeds: Seeds


class BenchmarkStepping(Stepping):
    """Profiles what a test benchmarks after the timing, which is not recorded."""

    def __init__(self, request: ProfileRequest, *, fixture: Any, **common: Unpack[Common]) -> None:
        super().__init__(replace(request, steps_itself=False), **common)
        self.fixture = fixture

    def step(self) -> None:
        """Refused: the steps are the benchmarked calls."""
        self.problem = self.problem or (
            "each call of the benchmarked function is a step already: leave out opprof.step()"
        )

    def benchmark(self, fixture: Any, function: Callable[..., object], *args: Any, **kwargs: Any) -> object:
        """Time a function by a `fixture` that does not show what it times, then profile it."""
        __tracebackhide__ = True
        result = fixture(function, *args, **kwargs)
        if not (fixture is self.fixture and can_be_followed(fixture)):
            self.profile(Benchmarked(function=function, args=args, kwargs=kwargs))
        return result

    def profile(self, work: Benchmarked) -> None:
        """Call the timed function as often as planned, each call a step.

        If it raises here, the measurement fails: the timed calls decide the test's outcome.
        """
        __tracebackhide__ = True
        with self._repeating():
            self._measure(work)
            if self._needs_a_second_look():
                again = BenchmarkStepping(
                    self.request,
                    fixture=self.fixture,
                    sources=self.sources | {SITES, CALLERS},
                    seeds=self._seeds,
                )
                self.again = again
                again._measure(work)
            if self._is_sound():
                self._time(work)

    @contextlib.contextmanager
    def _in_place(self, item: pytest.Item) -> Iterator[None]:
        del item
        if can_be_followed(self.fixture):
            with followed(self.fixture, self.profile):
                yield
        else:
            yield

    def _measure(self, work: Benchmarked) -> None:
        __tracebackhide__ = True
        try:
            self._seeds.next_call()
            arguments = work.prepare()
            self._start()
            while self._is_sound():
                args, kwargs = arguments
                bound = functools.partial(work.function, *args, **kwargs)  # not packed in the step
                self.begin_step()
                bound()
                self.end_step()
                with self._between_steps(work):
                    work.clean(arguments)
                    self._seeds.next_call()
                    if self.calls + 1 < self.request.calls:
                        arguments = work.prepare()
                if not self._goes_on():
                    break
        except BaseException as error:
            if not self.call_ended(error, decides=False):
                raise
        finally:
            self._stop()

    def _time(self, work: Benchmarked) -> None:
        """Time as many calls as the session asks for, without setup and teardown."""
        __tracebackhide__ = True
        try:
            for call in self.timed.calls():
                self._seeds.next_call()
                args, kwargs = arguments = work.prepare()
                with call:
                    work.function(*args, **kwargs)
                if not self.timed.has_failed:
                    work.clean(arguments)
        except BaseException as error:
            if not is_of_the_call(error):  # as in a later call
                raise
            self.timed.failed(error)

    @contextlib.contextmanager
    def _between_steps(self, work: Benchmarked) -> Iterator[None]:
        """Code inside is in no step, and not recorded: a setup is not benchmarked."""
        collector = Collector.instance()
        is_alone = self._stepper is None or (work.setup is None and work.teardown is None)
        if is_alone or not collector.recording:
            yield
            return
        collector.pause(paused=True)
        try:
            yield
        finally:
            collector.pause(paused=False)

    def _unrepeatable(self, error: BaseException) -> str:
        call = f"profiled call {self.calls + 1} of the benchmarked function raised {type(error).__name__}"
        if isinstance(error, CaptureBusyError):
            return f"the benchmark profiles itself: {call}. Leave out its own profiler, or the marker"
        return (
            f"cannot be repeated: {call}. Build its state in the setup of benchmark.pedantic(), or set "
            "warmup=0, active=1"
        )

    def _what_is_missing(self) -> str | None:
        if self.calls >= self.request.calls:
            return None
        if can_be_followed(self.fixture):
            return "the test never called its benchmark fixture, so there was nothing to profile"
        kind = f"{type(self.fixture).__module__}.{type(self.fixture).__qualname__}"
        return (
            f"its benchmark fixture ({kind}) hides the function that it times: take the opprof fixture too, "
            "and call opprof.benchmark(benchmark, function, ...)"
        )
