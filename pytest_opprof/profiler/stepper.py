"""Step through a schedule: ask it for each step's action, and make the moves from one to the next.

The moves are those of ``torch.profiler.profile``, with two faults mended. If RECORD is followed by NONE or
WARMUP, torch ends the recording without delivering it; with WARMUP it then starts the next one unprepared,
which crashes the interpreter. Here every recording that ends is delivered, and every one that starts was
prepared. The warning of an odd schedule stays.
"""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from pytest_opprof.errors import UsageError
from pytest_opprof.profiler.schedule import ProfilerAction, action_of

if TYPE_CHECKING:
    from pytest_opprof.profiler.recorder import CycleRecorder


class Move(enum.Enum):
    """One thing to do between two steps."""

    WARN = "warn that the schedule is odd"
    PREPARE = "make the collector ready"
    START = "open the window"
    STOP = "close the window"
    DELIVER = "hand the finished cycle over"


_NONE, _WARMUP, _RECORD, _SAVE = ProfilerAction
_SAVE_CYCLE = (Move.STOP, Move.DELIVER)
_OPEN_CYCLE = (Move.PREPARE, Move.START)

# From the action of the step that ends to that of the step that begins; None is the end of the profiler.
# A profiler that stops while it warms up opens and closes an empty window: it did run, so it has a result.
# The warning comes last, because under `-W error` it raises.
TRANSITIONS: Final[Mapping[tuple[ProfilerAction, ProfilerAction | None], tuple[Move, ...]]] = {
    (_NONE, _NONE): (),
    (_NONE, _WARMUP): (Move.PREPARE,),
    (_NONE, _RECORD): _OPEN_CYCLE,
    (_NONE, _SAVE): _OPEN_CYCLE,
    (_NONE, None): (),
    (_WARMUP, _NONE): (Move.START, Move.STOP, Move.WARN),
    (_WARMUP, _WARMUP): (),
    (_WARMUP, _RECORD): (Move.START,),
    (_WARMUP, _SAVE): (Move.START,),
    (_WARMUP, None): (Move.START, Move.STOP),
    (_RECORD, _NONE): (*_SAVE_CYCLE, Move.WARN),
    (_RECORD, _WARMUP): (*_SAVE_CYCLE, Move.PREPARE, Move.WARN),
    (_RECORD, _RECORD): (),
    (_RECORD, _SAVE): (),
    (_RECORD, None): _SAVE_CYCLE,
    (_SAVE, _NONE): _SAVE_CYCLE,
    (_SAVE, _WARMUP): (*_SAVE_CYCLE, Move.PREPARE),
    (_SAVE, _RECORD): (*_SAVE_CYCLE, *_OPEN_CYCLE),
    (_SAVE, _SAVE): (*_SAVE_CYCLE, *_OPEN_CYCLE),
    (_SAVE, None): _SAVE_CYCLE,
}


class Stepper:
    """Counts steps and keeps the recorder doing what the schedule says.

    Args:
        schedule: Maps a step's number to its action.
        moves: What makes some of the moves instead of the recorder.
    """

    def __init__(
        self,
        schedule: Callable[[int], object],
        recorder: CycleRecorder,
        *,
        named_steps: bool,
        moves: Mapping[Move, Callable[[], None]] | None = None,
    ) -> None:
        self._schedule = schedule
        self._recorder = recorder
        self._moves = {
            Move.PREPARE: recorder.prepare,
            Move.START: recorder.start,
            Move.STOP: recorder.stop,
            Move.DELIVER: recorder.deliver,
            **(moves or {}),
        }
        # whether each step begins where the last one ends; otherwise `begin_step` begins it
        self.named_steps = named_steps
        self.is_running = False  # whether it is between `start` and `stop`
        self.was_started = False  # whether `start` ever succeeded
        self.step_num = 0  # the number of the current step. It may be set. A second start begins at 0 again.
        self.action = self._action(0)  # the current step's action; it may be set

    def start(self) -> None:
        """Begin step 0; a `UsageError` if the profiler is running."""
        if self.is_running:
            raise UsageError("this profiler is running already; stop() it before you start it again")
        if self.was_started:
            self.step_num = 0
            self.action = self._action(0)
        try:
            self._transit(ProfilerAction.NONE, self.action)
        except BaseException:
            # Nobody will call stop() on a profiler that did not start.
            self._recorder.stop()
            raise
        self.is_running = self.was_started = True
        if self.named_steps:
            self.begin_step()

    def begin_step(self) -> None:
        """Begin the current step if a window is open; work before this is in no step."""
        if self.is_running and self._recorder.is_open:
            self._recorder.begin_step(self.step_num)

    def end_step(self) -> None:
        """End the current step; work between this and the next step is in no step."""
        self._recorder.end_step()

    def step(self) -> None:
        """End the current step and begin the next; a profiler that is not running only counts."""
        self._recorder.end_step()
        following = self._action(self.step_num + 1)
        previous, self.action = self.action, following
        self.step_num += 1
        if not self.is_running:
            return
        try:
            self._transit(previous, following)
        except BaseException:
            # A handler that raised prevented the start of the next window: the next step starts it.
            if not self._recorder.is_open:
                self.action = ProfilerAction.NONE
            raise
        if self.named_steps:
            self.begin_step()

    def stop(self) -> None:
        """End the current step and the recording; does nothing if they have ended."""
        if not self.is_running:
            return
        self.is_running = False
        self._recorder.end_step()
        self._transit(self.action, None)

    def _action(self, step: int) -> ProfilerAction:
        return action_of(self._schedule(step), step=step)

    def _transit(self, previous: ProfilerAction, following: ProfilerAction | None) -> None:
        was_running = self.is_running
        for move in TRANSITIONS[previous, following]:
            if move is Move.WARN:
                after = "the end" if following is None else following.name
                warnings.warn(f"Incorrect schedule: {previous.name} followed by {after}", stacklevel=4)
            else:
                self._moves[move]()
            if was_running and not self.is_running:
                return  # a handler stopped the profiler, so nobody would close the next window
