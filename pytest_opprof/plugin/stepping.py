"""One marked test's call phase: its steps and their recordings."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final

import pytest

from pytest_opprof.capture.call_sites import CALLERS, SITES
from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.cuda import CUDA
from pytest_opprof.capture.memory_source import MALLOC, PYTHON
from pytest_opprof.capture.recording import Recording
from pytest_opprof.capture.torch_compile import Compilations, CompileWatch, compiled
from pytest_opprof.errors import UsageError
from pytest_opprof.plugin.calls import Calls, MeasuredCall, is_of_the_call, replaced, unreported, unwarned
from pytest_opprof.plugin.counting import CountedCalls
from pytest_opprof.plugin.marker import ProfileRequest
from pytest_opprof.plugin.seeds import Seeds
from pytest_opprof.plugin.shortfall import REPEATABLE, fault, missing, unrepeatable
from pytest_opprof.plugin.timing import QuietMachine, QuietRecorder, TimedSteps
from pytest_opprof.profiler.recorder import CycleRecorder, RecorderOptions, sources_of
from pytest_opprof.profiler.stepper import Stepper
from pytest_opprof.results.run import Outcome

# If the session requests them, each test records them, like calls.
_MEMORY: Final = frozenset({PYTHON, MALLOC})


class Stepping:
    """Runs a marked test the planned number of times, each call a step, or lets it step itself.

    The first call decides the test's outcome. A fault of ours, or of a later call, fails only the
    measurement.

    Args:
        sources: The sources of ops, in the collector's words.
        fails: Whether a measurement would fail the test: then it is measured once more.
        looks: Smaller requests than `request`, tried first, in order.
        answers: Whether the measurement of one of these is enough.
        timed: Steps to time, without a profiler, after those of the schedule.
        counted: Calls whose instructions are counted, before the timed ones.
        quiet: Waits for an undisturbed moment before each recorded step.
        seeds: Makes each call draw the same random numbers.
        keep_events: A cycle with more events keeps only sums; 0 for no limit.
    """

    def __init__(
        self,
        request: ProfileRequest,
        *,
        sources: frozenset[str],
        fails: Callable[[Stepping], bool] | None = None,
        looks: Sequence[ProfileRequest] = (),
        answers: Callable[[Stepping], bool] = lambda _: False,
        timed: TimedSteps | None = None,
        counted: Sequence[CountedCalls] = (),
        quiet: QuietMachine | None = None,
        seeds: Seeds | None = None,
        keep_events: int = 0,
    ) -> None:
        self.request = request
        self.timed = timed or TimedSteps(0)
        self.counted = counted
        self.recordings: list[Recording] = []
        self.one_step: list[Recording] = []  # the last of `looks`, if it was not enough
        self.problem: str | None = None  # why the measurement failed
        self.doubt: str | None = None  # why a finished measurement cannot be trusted
        self.is_repeatable = True  # no later call failed
        self.calls = 0  # finished ones of the test, or its own steps
        # Why sources were left out from the start: a window knows only its own sources.
        self.unheard: dict[str, str] = {}
        self.is_running = False  # until the call phase is over
        self.outcome = Outcome.ERROR  # of the call phase, once it is over
        self.again: Stepping | None = None  # the second measurement, if one was needed
        self.compile_cache = ""  # whether torch.compile compiled for the test or used its cache
        # Subtests that failed in the first call: pytest fails the test later.
        self._is_repeating = self.has_failed_parts = False
        left = request.sources_left(sources)
        self.sources = sources_of(left, stacks=request.stacks, with_modules=request.with_modules)
        self._fails = fails
        self._looks, self._answers = looks, answers
        self._calls_before = 0
        self._quiet = quiet
        self._seeds = seeds or Seeds(None)
        self._keep_events = keep_events
        self._stepper: Stepper | None = None
        self._takes_cycles = True
        self._had_torch = "torch" in sys.modules
        self._compile_watch = CompileWatch()
        self._compilations: list[Compilations] = []
        self._item: pytest.Item | None = None

    @contextlib.contextmanager
    def around(self, item: pytest.Item) -> Iterator[None]:
        """Measure the code inside as the call phase of `item`."""
        self._item = item
        self._seeds.first_call()
        with self._own_faults():
            Collector.instance().open(sources=self.sources)  # else the first step pays for it
        self.is_running, before = True, compiled()
        try:
            with self._in_place(item):
                yield
            self.outcome = Outcome.PASSED
        except BaseException as error:
            self.outcome = Outcome.SKIPPED if isinstance(error, pytest.skip.Exception) else Outcome.FAILED
            raise
        finally:
            self._seeds.end()
            self.is_running, self.compile_cache = False, compiled().state_since(before)
        if self.problem is None:
            # Only a passed test hears of it: the session asks.
            self.problem = self._what_is_missing()

    def step(self) -> None:
        """The test finished a step, in a test that steps itself."""
        if self.again is not None:
            self.again.step()
        elif self.timed.is_open:
            self.timed.step()
        elif self._stepper is not None and self.request.steps_itself:
            self.end_step()
            self._end_of_step(is_last=False)
            self.begin_step()

    # A step owns its allocations: nothing of ours may run between these two and the test's code.

    def begin_step(self) -> None:
        """The current step begins, if it is recorded."""
        if self._stepper is not None and self.problem is None:
            try:
                self._compile_watch.begin()
                self._stepper.begin_step()
            except Exception as error:  # noqa: BLE001  # whatever it is, the test did not do it
                self._blame(error)

    def end_step(self) -> None:
        """The current step is over, if it was recorded."""
        if self._stepper is not None:
            try:
                self._stepper.end_step()
                self._compilations.append(self._compile_watch.end())
            except Exception as error:  # noqa: BLE001  # as above
                self._blame(error)

    def benchmark(self, fixture: Any, function: Callable[..., object], *args: Any, **kwargs: Any) -> object:
        """Time a function with a fixture, then profile it: this test has no such fixture."""
        del fixture, function, args, kwargs
        raise UsageError(
            "opprof.benchmark(): the test has no benchmark fixture: make `benchmark` an argument of the test"
        )

    @property
    def live(self) -> list[Recording]:
        """The finished cycles, and the open window's events so far."""
        if self.again is not None:
            return self.again.live
        is_open = self._stepper is not None and Collector.instance().recording
        return [*self.recordings, Collector.instance().peek()] if is_open else self.recordings

    @property
    def is_as_seen(self) -> bool:
        """Whether only instructions were measured since the last look at the recordings."""
        is_final = self.problem is None and self.again is None
        return is_final and not (self.compile_cache or self.timed.durations_ns)

    @property
    def has_counted(self) -> bool:
        """Whether there are instructions, or a reason why not."""
        return any(calls.has_been_asked for calls in self.counted)

    # ---- the test's calls --------------------------------------------------------------------

    def _in_place(self, item: pytest.Item) -> AbstractContextManager[None]:
        """Inside, the measured function is called as often as planned."""
        return replaced(item, self._calls)

    def _calls(self) -> Calls:
        """What to hold open around each call, of the measurement and of its confirmation."""
        with contextlib.ExitStack() as later:
            for number, call in enumerate(self._all_calls()):
                if number == 1:
                    later.enter_context(self._repeating())
                if number:
                    self._seeds.next_call()
                yield call

    def _all_calls(self) -> Calls:
        whole, unanswered = self.request, list[Recording]()
        for look in self._looks:
            self.request = look
            yield from self.planned_calls(decides=not self._calls_before)
            if not self._is_sound() or (self._what_is_missing() is None and self._answers(self)):
                break
            if self.calls == 1:
                self.doubt = None  # a warm-up may import anything
            self._calls_before += self.calls
            unanswered, self.recordings, self.calls = self.recordings, [], 0
        else:
            self.request, self.one_step = whole, unanswered
            yield from self.planned_calls(decides=not self._calls_before)
            if self._needs_a_second_look():
                sources = self.sources | {SITES, CALLERS}
                self.again = Stepping(whole, sources=sources, keep_events=self._keep_events)
                yield from self.again.planned_calls(decides=False)
        if self.request.steps_itself:
            self.timed.end()
        elif self._is_sound():
            for counted in self.counted:
                yield from counted.calls()
            yield from self.timed.calls()

    @contextlib.contextmanager
    def _repeating(self) -> Iterator[None]:
        """Run the test again without reporting to pytest, which has its first result."""
        assert self._item is not None, "a test is measured inside of `around`"
        self._is_repeating = True
        try:
            with unreported(self._item), unwarned():
                yield
        finally:
            self._is_repeating = False

    def note_part(self, report: pytest.TestReport) -> None:
        """A part of the test with its own report ended, such as a subtest.

        A part that fails only in a later call is a fault of the measurement.
        """
        if not self._is_repeating:
            self.has_failed_parts |= report.failed
        elif report.failed:
            report.outcome, report.longrepr = "passed", None
            if not self.has_failed_parts and self.problem is None:
                self.problem = f"cannot be repeated: a subtest of call {self._call} failed. {REPEATABLE}"
                self.is_repeatable = False

    def planned_calls(self, *, decides: bool) -> Calls:
        """What to hold open around each call of one measurement, whose first may decide the outcome."""
        self._start()
        try:
            yield MeasuredCall(self, decides=decides)
            if self.request.steps_itself:
                self._takes_cycles = False  # an unfinished step is not a step
            else:
                while self._goes_on():
                    yield MeasuredCall(self, decides=False)
        finally:
            self._stop()

    def call_ended(self, error: BaseException | None, *, decides: bool) -> bool:
        """Note how a call ended; says whether we keep its error: only the first call decides the outcome."""
        if error is None:
            return False
        self._takes_cycles = False
        if decides or not is_of_the_call(error):
            return False
        self.problem, self.is_repeatable = self._unrepeatable(error), False
        return True

    @property
    def _call(self) -> int:
        """The running call's number, from 1."""
        return self._calls_before + self.calls + 1

    def _goes_on(self) -> bool:
        """Count the call that ended; whether another follows."""
        if not self._is_sound():
            return False
        self._end_of_step(is_last=self.calls + 1 == self.request.calls)
        return self._is_sound() and self.calls < self.request.calls

    def _is_sound(self) -> bool:
        return self.problem is None

    def _unrepeatable(self, error: BaseException) -> str:
        return unrepeatable(error, call=self._call)

    def _what_is_missing(self) -> str | None:
        return missing(self.request, calls=self.calls, cycles=len(self.recordings))

    def _needs_a_second_look(self) -> bool:
        """Before a test fails, it is measured twice: a value that then differs is not gated."""
        if self._fails is None or not self._is_sound() or self._what_is_missing() is not None:
            return False
        return self._fails(self)

    # ---- the profiler ------------------------------------------------------------------------

    def _start(self) -> None:
        with self._own_faults():
            kind = CycleRecorder if self._quiet is None else partial(QuietRecorder, quiet=self._quiet)
            problems = Collector.instance().problems
            self.unheard = {source: problems[source] for source in problems if source != CUDA}
            recorder: CycleRecorder = kind(
                RecorderOptions(
                    # CUDA may start at any time; any other missing source stays missing.
                    sources=self.sources - self.unheard.keys(),
                    tells=False,  # the session does, once
                    record_shapes=self.request.record_shapes,
                    profile_memory=self.request.profile_memory or not self.sources.isdisjoint(_MEMORY),
                    with_flops=self.request.with_flops,
                    sampling=self.request.sampling,
                    keep_cycles=1,
                    keep_events=self._keep_events,
                    observer=None,
                ),
                on_cycle=lambda: self._take(recorder.cycles[-1].recording),
                trace_id_callback=None,
            )
            self._stepper = Stepper(self.request.schedule, recorder, named_steps=False)
            self._stepper.start()

    def _take(self, recording: Recording) -> None:
        if self._takes_cycles:
            steps = len(recording.steps)
            recording.compilations = tuple(self._compilations[-steps:]) if steps else ()
            self.recordings.append(recording)

    def _end_of_step(self, *, is_last: bool) -> None:
        self.calls += 1
        stepper = self._stepper
        if stepper is None:
            return
        with self._own_faults():
            if "torch" in sys.modules and not self._had_torch and Collector.instance().recording:
                self.doubt = (
                    f"torch was first imported in step {stepper.step_num}, so its ops were not recorded: "
                    "import it before the test, or give the marker a warm-up step"
                )
            if is_last:
                self._stop()
            else:
                stepper.step()
        if self.request.steps_itself and self.timed.wanted and len(self.recordings) >= self.request.cycles:
            self._takes_cycles = False  # the schedule is done: time the rest of the test
            self._stop()
            self.timed.begin()
        self._had_torch = "torch" in sys.modules

    def _stop(self) -> None:
        stepper, self._stepper = self._stepper, None
        if stepper is not None:
            with self._own_faults():
                stepper.stop()

    @contextlib.contextmanager
    def _own_faults(self) -> Iterator[None]:
        """Keep our own errors and warnings away from the test.

        They come of odd schedules, and of a torch that cannot be observed. Without either, the filters are
        left alone: changing them makes Python forget which warnings it has shown.
        """
        is_silent = self.request.numbers is not None and ("torch" in sys.modules) == self._had_torch
        try:
            with contextlib.nullcontext() if is_silent else warnings.catch_warnings(action="ignore"):
                yield
        except Exception as error:  # noqa: BLE001  # whatever it is, the test did not do it
            self._blame(error)

    def _blame(self, error: Exception) -> None:
        self.problem = fault(error)
