"""The stepper: its calls on the recorder, step by step."""

from collections.abc import Callable
from typing import Any

import pytest

from pytest_opprof.errors import CaptureBusyError, UsageError
from pytest_opprof.profiler.schedule import ProfilerAction
from pytest_opprof.profiler.stepper import Move, Stepper

ACTIONS = {
    "N": ProfilerAction.NONE,
    "W": ProfilerAction.WARMUP,
    "R": ProfilerAction.RECORD,
    "S": ProfilerAction.RECORD_AND_SAVE,
}


class LoggingRecorder:
    """Logs its calls, and raises where a test wants it to."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.is_open = False
        self.on_deliver: Callable[[], None] = lambda: None
        self.busy = False
        self._step: int | None = None
        self._pending = False

    def prepare(self) -> None:
        self.log.append("P")

    def start(self) -> None:
        if self.busy:
            raise CaptureBusyError("another window is open")
        self.log.append("T")
        self.is_open = True

    def stop(self) -> None:
        if self.is_open:
            self.log.append("X")
            self.is_open = False
            self._pending = True

    def deliver(self) -> None:
        if self._pending:
            self._pending = False
            self.log.append("C")
            self.on_deliver()

    def begin_step(self, number: int) -> None:
        self.log.append(f"({number}")
        self._step = number

    def end_step(self) -> None:
        if self._step is not None:
            self.log.append(f"{self._step})")
            self._step = None


def plan(letters: str) -> Callable[[int], object]:
    """A schedule of one letter per step; the last one repeats."""
    return lambda step: ACTIONS[letters[min(step, len(letters) - 1)]]


def stepper_with(schedule: Callable[[int], object], recorder: Any, *, named_steps: bool = True) -> Stepper:
    """A stepper of a recorder that only has the stepper's methods."""
    return Stepper(schedule, recorder, named_steps=named_steps)


def stepper_of(letters: str, *, named_steps: bool = True) -> tuple[Stepper, LoggingRecorder]:
    recorder = LoggingRecorder()
    return stepper_with(plan(letters), recorder, named_steps=named_steps), recorder


def take_steps(stepper: Stepper, count: int) -> None:
    for _ in range(count):
        stepper.step()


@pytest.mark.parametrize(
    ("letters", "log"),
    [
        pytest.param("NWRS", "P T (2 2) (3 3) X C", id="one-cycle"),
        pytest.param("RRR", "P T (0 0) (1 1) (2 2) X C", id="record-to-the-end"),
        pytest.param("SS", "P T (0 0) X C P T (1 1) X C", id="each-step-a-cycle"),
        pytest.param("SWR", "P T (0 0) X C P T (2 2) X C", id="save-then-warm-up"),
        pytest.param("NN", "", id="never-records"),
        pytest.param("NW", "P T X", id="ends-warming-up"),
    ],
)
def test_schedule_drives_the_recorder(letters: str, log: str) -> None:
    stepper, recorder = stepper_of(letters)
    stepper.start()
    take_steps(stepper, len(letters) - 1)
    stepper.stop()
    assert " ".join(recorder.log) == log


@pytest.mark.parametrize(
    ("letters", "following", "log"),
    [
        pytest.param("RWRS", "WARMUP", "P T (0 0) X C P T (2 2) (3 3) X C", id="record-then-warm-up"),
        pytest.param("RN", "NONE", "P T (0 0) X C", id="record-then-nothing"),
    ],
)
def test_odd_schedule_is_warned_of_and_loses_nothing(letters: str, following: str, log: str) -> None:
    stepper, recorder = stepper_of(letters)
    stepper.start()
    with pytest.warns(UserWarning, match=f"Incorrect schedule: RECORD followed by {following}"):
        take_steps(stepper, len(letters) - 1)
    stepper.stop()
    assert " ".join(recorder.log) == log


def test_useless_warm_up_warns() -> None:
    stepper, recorder = stepper_of("WN")
    stepper.start()
    with pytest.warns(UserWarning, match="WARMUP followed by NONE"):
        stepper.step()
    assert recorder.log == ["P", "T", "X"]


def test_warning_as_error_leaves_no_window_open() -> None:
    stepper, recorder = stepper_of("RN")
    stepper.start()
    with pytest.raises(UserWarning, match="RECORD followed by NONE"):
        stepper.step()
    assert not recorder.is_open
    stepper.stop()
    assert recorder.log == ["P", "T", "(0", "0)", "X", "C"]


def test_steps_without_a_schedule_are_only_counted() -> None:
    stepper, recorder = stepper_of("R", named_steps=False)
    stepper.start()
    stepper.step()
    stepper.step()
    stepper.stop()
    assert recorder.log == ["P", "T", "X", "C"]
    assert stepper.step_num == 2


def test_handler_sees_the_step_to_come() -> None:
    stepper, recorder = stepper_of("SN")
    seen: list[int] = []
    recorder.on_deliver = lambda: seen.append(stepper.step_num)
    stepper.start()
    stepper.step()
    assert seen == [1]


def test_stop_twice_is_harmless() -> None:
    stepper, recorder = stepper_of("R")
    stepper.start()
    stepper.stop()
    stepper.stop()
    assert recorder.log.count("X") == 1


def test_stop_within_a_handler_is_harmless() -> None:
    stepper, recorder = stepper_of("R")
    recorder.on_deliver = stepper.stop
    stepper.start()
    stepper.stop()
    assert recorder.log.count("C") == 1


def test_stop_between_two_cycles_opens_no_window() -> None:
    stepper, recorder = stepper_of("SS")
    recorder.on_deliver = stepper.stop
    stepper.start()
    take_steps(stepper, 2)
    assert recorder.log == ["P", "T", "(0", "0)", "X", "C"]


def test_start_twice_is_refused() -> None:
    stepper, recorder = stepper_of("R")
    stepper.start()
    with pytest.raises(UsageError, match="running already"):
        stepper.start()
    assert recorder.is_open


def test_second_use_begins_at_step_0() -> None:
    stepper, recorder = stepper_of("WSN")
    for _ in range(2):
        stepper.start()
        stepper.step()
        stepper.step()
        stepper.stop()
    assert recorder.log == ["P", "T", "(1", "1)", "X", "C"] * 2


def test_first_start_begins_at_the_step_that_was_set() -> None:
    stepper, recorder = stepper_of("R")
    stepper.step_num = 5
    stepper.start()
    stepper.stop()
    assert recorder.log == ["P", "T", "(5", "5)", "X", "C"]


def test_some_moves_may_be_made_elsewhere() -> None:
    recorder = LoggingRecorder()
    moves = {Move.PREPARE: lambda: recorder.log.append("mine")}
    stepper = Stepper(plan("S"), recorder, named_steps=False, moves=moves)  # type: ignore[arg-type]  # as above
    stepper.start()
    stepper.stop()
    assert recorder.log == ["mine", "T", "X", "C"]


def test_step_while_stopped_only_counts() -> None:
    stepper, recorder = stepper_of("R")
    stepper.step()
    assert stepper.step_num == 1
    assert recorder.log == []


def test_invalid_schedule_action_changes_nothing() -> None:
    recorder = LoggingRecorder()
    stepper = stepper_with(lambda step: "later" if step else ProfilerAction.RECORD, recorder)
    stepper.start()
    with pytest.raises(ValueError, match="'later' for step 1"):
        stepper.step()
    assert (stepper.step_num, stepper.action, recorder.is_open) == (0, ProfilerAction.RECORD, True)
    stepper.stop()
    assert recorder.log[-2:] == ["X", "C"]


def test_invalid_first_action_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="answered 0 for step 0"):
        stepper_with(lambda step: step, LoggingRecorder())


def test_handler_error_costs_one_step_and_no_more() -> None:
    stepper, recorder = stepper_of("SRS")

    def fail() -> None:
        recorder.on_deliver = lambda: None
        raise KeyError("handler")

    recorder.on_deliver = fail
    stepper.start()
    with pytest.raises(KeyError, match="handler"):
        stepper.step()
    stepper.step()
    stepper.stop()
    assert recorder.log == ["P", "T", "(0", "0)", "X", "C", "P", "T", "(2", "2)", "X", "C"]


def test_busy_collector_leaves_the_profiler_startable() -> None:
    stepper, recorder = stepper_of("R")
    recorder.busy = True
    with pytest.raises(CaptureBusyError):
        stepper.start()
    assert not stepper.is_running
    recorder.busy = False
    stepper.start()
    assert recorder.is_open
