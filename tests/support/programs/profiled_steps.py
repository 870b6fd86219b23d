"""Steps of ranges under a profile, planned by letters, and the recorded names."""

from collections.abc import Callable

from pytest_opprof import ProfilerAction, profile, record_function

ACTIONS = {
    "N": ProfilerAction.NONE,
    "W": ProfilerAction.WARMUP,
    "R": ProfilerAction.RECORD,
    "S": ProfilerAction.RECORD_AND_SAVE,
}


def plan(letters: str) -> Callable[[int], ProfilerAction]:
    """A schedule of one letter per step; the last one repeats."""
    return lambda step: ACTIONS[letters[min(step, len(letters) - 1)]]


def work(number: int) -> None:
    with record_function("outer"), record_function(f"inner {number}"):
        pass


def run_steps(prof: profile, count: int) -> None:
    for number in range(count):
        work(number)
        prof.step()


def names(prof: profile) -> list[str]:
    return [str(event.trace_name) for event in prof.events()]


class ToldObserver:
    """A window's observer that keeps which of its methods were called."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def start(self) -> None:
        self.told.append("start")

    def stop(self) -> None:
        self.told.append("stop")

    def cleanup(self) -> None:
        self.told.append("cleanup")
