"""``torch.profiler.profile`` over our own collector."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Final

from pytest_opprof.capture.sources import EVERY_OP, WithStack
from pytest_opprof.profiler.activities import supported_activities, without_or_with_cuda
from pytest_opprof.profiler.execution_trace_observer import ExecutionTraceObserver
from pytest_opprof.profiler.kineto_profile import KinetoProfile
from pytest_opprof.profiler.recorder import WindowObserver
from pytest_opprof.profiler.schedule import ProfilerAction, action_of, record_always
from pytest_opprof.profiler.step_tracker import KinetoStepTracker
from pytest_opprof.profiler.stepper import Move, Stepper

_STEPS: Final = "ProfilerStep"  # our name in the step tracker, which is torch's too
_ENDS_EMPTY: Final = (
    "the profiler stopped in the warm-up of another cycle, so its last cycle is empty: give the schedule "
    "repeat=1, or look at the finished ones in `cycles`"
)


class profile(KinetoProfile):  # noqa: N801  # torch's name
    """Record ops, with the arguments and the meaning of ``torch.profiler.profile``.

    Unlike torch's, it sees the ops of all threads, keeps every cycle, can be used again, from step 0 on, and
    can be stopped twice. A second profiler that starts while this one records gets an error, and this one
    loses nothing. `_KinetoProfile` explains the other arguments.

    Args:
        activities: What to record (default: the CPU, and CUDA if torch or this process has it). A warning
            names activities that are not available.
        execution_trace_observer: As in `_KinetoProfile`. Without one, and without `sampling`, the environment
            variable ENABLE_PYTORCH_EXECUTION_TRACE=1 adds one that writes into a temporary file.
        schedule: Maps a step's number to its action (default: record everything).
        on_trace_ready: Called with this profiler at the end of each cycle.
        use_cuda: Deprecated: True adds CUDA to the activities, False removes it.

    Raises:
        AssertionError: No activity is left. Torch raises the same.
        ValueError: An activity is given twice, or the schedule's answer for step 0 is not an action.
        UsageError: `sampling`, `with_stack`, `keep_cycles` or a performance event is invalid.
        TypeError: `experimental_config` is neither ours nor torch's.
    """

    def __init__(
        self,
        *,
        activities: Iterable[object] | None = None,
        schedule: Callable[[int], object] | None = None,
        on_trace_ready: Callable[[profile], object] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: WithStack = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: object | None = None,
        execution_trace_observer: WindowObserver | None = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        keep_cycles: int | None = None,
        sampling: float = EVERY_OP,
    ) -> None:
        # An observer needs every op, so one that only the environment asks for gives way to sampling.
        if execution_trace_observer is None and sampling == EVERY_OP:
            execution_trace_observer = ExecutionTraceObserver.build_execution_trace_obs_from_env()
        super().__init__(
            activities=without_or_with_cuda(activities, use_cuda=use_cuda),
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer,
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
            keep_cycles=keep_cycles,
            sampling=sampling,
        )
        self.on_trace_ready = on_trace_ready
        self.schedule = schedule or record_always
        self._stepper = Stepper(
            lambda step: self.schedule(step),  # noqa: PLW0108  # it may be set
            self._recorder,
            named_steps=schedule is not None,
            # A subclass may replace these.
            moves={
                Move.PREPARE: self.prepare_trace,
                Move.START: self.start_trace,
                Move.STOP: self.stop_trace,
            },
        )
        KinetoStepTracker.init_step_count(_STEPS)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            super().__exit__(kind, error, traceback)
        finally:
            KinetoStepTracker.erase_step_count(_STEPS)

    def start(self) -> None:
        """Begin step 0 and its action.

        Raises:
            UsageError: This profiler is running.
            CaptureBusyError: Another window is open in this process; it is unaffected.
        """
        self._stepper.start()

    def step(self) -> None:
        """Tell the profiler that the next step begins.

        Raises:
            ValueError: The schedule's answer is not an action; the profiler goes on as before.
        """
        self._stepper.step()
        KinetoStepTracker.increment_step(_STEPS)

    def stop(self) -> None:
        """End the current step and the recording; does nothing if it has ended."""
        warms_up = self._stepper.is_running and self.current_action is ProfilerAction.WARMUP
        has_cycles = bool(self._recorder.cycles)
        self._stepper.stop()
        if warms_up and has_cycles:
            warnings.warn(_ENDS_EMPTY, stacklevel=3)

    def stop_trace(self) -> None:
        """Stop recording, without a call of `on_trace_ready`; does nothing if it has stopped."""
        self._recorder.stop()

    @property
    def step_num(self) -> int:
        """The number of the current step; within `on_trace_ready`, of the next step. It may be set."""
        return self._stepper.step_num

    @step_num.setter
    def step_num(self, number: int) -> None:
        self._stepper.step_num = number

    @property
    def current_action(self) -> ProfilerAction:
        """The action of the current step. It may be set."""
        return self._stepper.action

    @current_action.setter
    def current_action(self, action: object) -> None:
        self._stepper.action = action_of(action, step=self.step_num)

    @property
    def record_steps(self) -> bool:
        """Whether each step is a range in the recording. It may be set."""
        return self._stepper.named_steps

    @record_steps.setter
    def record_steps(self, wanted: bool) -> None:
        self._stepper.named_steps = wanted

    def _trace_ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _why_nothing(self) -> str:
        if self._stepper.is_running:
            return (
                f" yet: no cycle has ended by step {self.step_num}; call it in on_trace_ready or after stop()"
            )
        if self._stepper.was_started:
            return (
                f": the profiler was stopped at step {self.step_num}, "
                "before its schedule recorded anything; take more steps, or shorten wait and warmup"
            )
        return ": this profiler was never started; use it in a with statement"


def init_for_cuda_graphs(*, window: bool = False) -> None:
    """Torch's ``_init_for_cuda_graphs``, which opens an empty profile before a CUDA graph is captured.

    It works around CUDA 11, where CUPTI had to start first. On CUDA 13 such a window loses the kernels of all
    later windows, so nothing is done here without `window`.

    Args:
        window: Open and close a window with all activities of this machine.

    Raises:
        CaptureBusyError: A window is open in this process.
    """
    if window:
        with profile(activities=supported_activities()):
            pass
