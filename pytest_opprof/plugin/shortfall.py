"""Why a measurement is incomplete, and what to do: sentences for the user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from pytest_opprof.errors import CaptureBusyError, OpprofError
from pytest_opprof.wording import counted

if TYPE_CHECKING:
    from pytest_opprof.plugin.marker import ProfileRequest

REPEATABLE: Final = (
    "Build the state inside the test, take the opprof fixture and step yourself, or set warmup=0, active=1"
)

# What our own code may raise while a test is set up, whose fixtures may have replaced anything.
FAULTS: Final = (Exception, pytest.fail.Exception, pytest.skip.Exception)


def fault(error: BaseException) -> str:
    """Why a measurement failed that the test did not fail."""
    return (
        str(error)
        if isinstance(error, OpprofError)
        else f"the profiler failed: {type(error).__name__}: {error}"
    )


def unrepeatable(error: BaseException, *, call: int) -> str:
    """Why a test cannot be called again: what its call of this number, from 1, raised."""
    raised = f"call {call} raised {type(error).__name__}"
    if isinstance(error, CaptureBusyError):
        return f"the test profiles itself: {raised}. Leave out its own profiler, or the marker"
    if type(error).__name__ == "FixtureAlreadyUsed":  # avoids importing pytest-benchmark
        return f"cannot be repeated: {raised}. Make `benchmark` an argument of the test"
    return f"cannot be repeated: {raised}. {REPEATABLE}"


def missing(request: ProfileRequest, *, calls: int, cycles: int) -> str | None:
    """Why less was measured than planned; None if nothing is missing.

    `calls` are the finished calls of the test, or its own steps; `cycles` the complete ones of the schedule.
    """
    if not request.steps_itself:
        return None if calls >= request.calls else f"the test was called {calls} of {request.calls} times"
    wanted = request.cycles
    if cycles >= wanted:
        return None
    so_far = "no cycle of its schedule is" if wanted == 1 else f"{cycles} of its {wanted} cycles are"
    return (
        f"the test finished {counted(calls, 'step')}, and {so_far} complete: call "
        "opprof.step() at the end of each step, or give the marker a shorter schedule"
    )
