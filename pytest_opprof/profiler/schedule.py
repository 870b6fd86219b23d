"""torch.profiler's schedules: the action of each step."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable


class ProfilerAction(enum.Enum):
    """What the profiler does during one step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Build a schedule of cycles, as ``torch.profiler.schedule`` does.

    The first ``skip_first`` steps do nothing. Then each cycle waits, warms up, and records; the last
    recorded step of a cycle also hands the cycle over to ``on_trace_ready``.

    Args:
        wait: Steps at the start of each cycle in which nothing happens.
        warmup: Steps in which the profiler is prepared but nothing is kept.
        active: Steps that are recorded; at least 1.
        repeat: Number of cycles; 0 repeats them until the profiler stops.
        skip_first: Steps before the first cycle.
        skip_first_wait: If not 0, the first cycle has no ``wait`` steps.

    Returns:
        A function from the number of a step, counted from 0, to its action.

    Raises:
        AssertionError: A number is out of its range. Torch raises the same.
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        message = (
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
        raise AssertionError(message)
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)

    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        # Skipping the first wait shifts the whole sequence: the first cycle is shorter, and none is added.
        position = step - skip_first + (wait if skip_first_wait else 0)
        if repeat and position >= repeat * cycle:
            return ProfilerAction.NONE
        position %= cycle
        if position < wait:
            return ProfilerAction.NONE
        if position < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if position < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def record_always(_step: int) -> ProfilerAction:
    """The schedule of a profiler that was given none: every step is recorded."""
    return ProfilerAction.RECORD


def action_of(answer: object, *, step: int) -> ProfilerAction:
    """The action that a schedule returned for a step; torch's own ``ProfilerAction`` is recognized by name.

    A `ValueError` says what another answer was.
    """
    if isinstance(answer, ProfilerAction):
        return answer
    if isinstance(answer, enum.Enum) and type(answer).__name__ == ProfilerAction.__name__:
        action = ProfilerAction.__members__.get(answer.name)
        if action is not None:
            return action
    raise ValueError(
        f"the schedule answered {answer!r} for step {step}; "
        f"it must return one of {', '.join(f'ProfilerAction.{name}' for name in ProfilerAction.__members__)}"
    )
