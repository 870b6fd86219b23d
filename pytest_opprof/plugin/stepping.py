"""One marked test's call phase: its steps, and what was recorded in them."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from _pytest.outcomes import Exit, OutcomeException

from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.recording import Recording
from pytest_opprof.errors import OpprofError
from pytest_opprof.plugin.marker import ProfileRequest
from pytest_opprof.profiler.profile import profile


class Stepping:
    """Runs a marked test the planned number of times, each call a step, or lets it step itself.

    The first call decides the test's outcome. A fault of ours, or of a later call, is kept for the
    measurement and changes nothing of the test's own.

    Attributes:
        recordings: Of the finished cycles, in order.
        problem: Why the measurement failed; None while it has not.
        doubt: Why a finished measurement cannot be trusted; None when it can.
        calls: Finished calls of the test, or steps that it finished itself.
    """

    def __init__(self, request: ProfileRequest) -> None:
        self.request = request
        self.recordings: list[Recording] = []
        self.problem: str | None = None
        self.doubt: str | None = None
        self.calls = 0
        self._profiler: profile | None = None
        self._takes_cycles = True
        self._had_torch = False

    def prepare(self, sources: frozenset[str]) -> None:
        """Have the collector ready before the call phase, so that the first step does not pay for it."""
        with self._own_faults():
            Collector.instance().open(sources=sources)

    @contextlib.contextmanager
    def around(self, item: pytest.Item) -> Iterator[None]:
        """Measure what runs inside as the call phase of `item`."""
        if self.request.steps_itself:
            with self._own_steps():
                yield
            return
        with _replaced(item, self._repeating):
            yield
        if self.calls < self.request.calls and self.problem is None:
            # Only a test that passed is told so: the session asks.
            self.problem = f"the test was called {self.calls} of {self.request.calls} times"

    def step(self) -> None:
        """The test finished a step, in a test that steps itself."""
        if self._profiler is not None:
            self._end_of_step(is_last=False)

    @property
    def live(self) -> list[Recording]:
        """The finished cycles, and what the open window holds so far."""
        collector = Collector.instance()
        if self._profiler is not None and collector.recording:
            return [*self.recordings, collector.peek()]
        return self.recordings

    # ---- the test steps itself ---------------------------------------------------------------

    @contextlib.contextmanager
    def _own_steps(self) -> Iterator[None]:
        self._start()
        try:
            yield
        finally:
            self._takes_cycles = False  # a step that the test did not finish is no step
            self._stop()
            if not self.recordings and self.problem is None:
                self.problem = (
                    f"the test finished {self.calls} steps, and no cycle of its schedule was complete: "
                    "call opprof.step() at the end of each step, or give the marker a shorter schedule"
                )

    # ---- we call the test --------------------------------------------------------------------

    def _repeating(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """The test's function, called as often as planned with the same arguments."""
        if inspect.iscoroutinefunction(original):

            @functools.wraps(original)
            async def run_async(*args: Any, **kwargs: Any) -> Any:
                __tracebackhide__ = True
                with self._steps():
                    result = await original(*args, **kwargs)
                    while self._goes_on():
                        with self._later_call():
                            await original(*args, **kwargs)
                return result

            return run_async

        @functools.wraps(original)
        def run(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            with self._steps():
                result = original(*args, **kwargs)
                while self._goes_on():
                    with self._later_call():
                        original(*args, **kwargs)
            return result

        return run

    @contextlib.contextmanager
    def _steps(self) -> Iterator[None]:
        __tracebackhide__ = True
        self._start()
        try:
            yield
        except BaseException:
            self._takes_cycles = False
            raise
        finally:
            self._stop()

    def _goes_on(self) -> bool:
        """Count the call that ended; whether another follows."""
        if self.problem is None:
            self._end_of_step(is_last=self.calls + 1 == self.request.calls)
        return self.problem is None and self.calls < self.request.calls

    @contextlib.contextmanager
    def _later_call(self) -> Generator[None, None, None]:
        __tracebackhide__ = True
        try:
            yield
        except Exit:
            raise
        except (Exception, OutcomeException) as error:  # noqa: BLE001  # the outcome is the first call's
            self._takes_cycles = False
            self.problem = (
                f"cannot be repeated: call {self.calls + 1} raised {type(error).__name__}. Build the state "
                "inside the test, take the opprof fixture and step yourself, or set warmup=0, active=1"
            )

    # ---- the profiler ------------------------------------------------------------------------

    def _start(self) -> None:
        with self._own_faults():
            self._profiler = profile(
                schedule=self.request.schedule,
                record_shapes=self.request.record_shapes,
                on_trace_ready=self._take_cycle,
                keep_cycles=1,
            )
            self._had_torch = "torch" in sys.modules
            self._profiler.start()

    def _end_of_step(self, *, is_last: bool) -> None:
        self.calls += 1
        if self._profiler is None:
            return
        with self._own_faults():
            has_torch = "torch" in sys.modules
            if has_torch > self._had_torch and Collector.instance().recording:
                self.doubt = (
                    f"torch was first imported in step {self._profiler.step_num}, so that its ops were not "
                    "seen: import it before the test, or give the marker a warm-up step"
                )
            self._had_torch = has_torch
            if is_last:
                self._stop()
            else:
                self._profiler.step()

    def _stop(self) -> None:
        profiler, self._profiler = self._profiler, None
        if profiler is not None:
            with self._own_faults():
                profiler.stop()

    def _take_cycle(self, profiler: profile) -> None:
        if self._takes_cycles:
            self.recordings.append(profiler.cycles[-1].recording)

    @contextlib.contextmanager
    def _own_faults(self) -> Iterator[None]:
        """Keep what goes wrong in our own code away from the test."""
        try:
            yield
        except OpprofError as error:
            self.problem = str(error)
        except Exception as error:  # noqa: BLE001  # whatever it is, the test did not do it
            self.problem = f"the profiler failed: {type(error).__name__}: {error}"


@contextlib.contextmanager
def _replaced(item: pytest.Item, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """Have pytest call something else in place of the test's function, for a while.

    A unittest method is looked up on its instance by some runners (IsolatedAsyncioTestCase), so it is
    replaced there too.
    """
    original = item.obj  # type: ignore[attr-defined]  # Function items have it, and only they can be profiled
    replacement = make(original)
    item.obj = replacement  # type: ignore[attr-defined]
    instance = getattr(item, "instance", None)
    is_unittest = isinstance(item, getattr(sys.modules.get("_pytest.unittest"), "TestCaseFunction", ()))
    name = getattr(item, "originalname", None) or item.name
    if is_unittest and instance is not None:
        setattr(instance, name, replacement)
    try:
        yield
    finally:
        item.obj = original  # type: ignore[attr-defined]
        if is_unittest and instance is not None:
            with contextlib.suppress(AttributeError):
                delattr(instance, name)
