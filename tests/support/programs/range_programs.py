"""Random programs of ranges from hypothesis, run on real threads, and their expected recording."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from hypothesis import strategies as st

from pytest_opprof import record_function

MOST_THREADS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A thread's next action.

    Attributes:
        thread: Whose turn it is.
        enters: It enters a new range, instead of leaving one.
        which: The open range that it leaves: oldest first, modulo their number.
    """

    thread: int
    enters: bool
    which: int = 0


@dataclass(slots=True, kw_only=True)
class Entered:
    """One enter, and its result."""

    name: str
    thread: int
    below: list[Entered]  # open on its thread when it started, outermost first
    is_async: bool = False
    is_unfinished: bool = True

    @property
    def caller(self) -> Entered | None:
        """The nearest enclosing range that is not asynchronous."""
        return next((entered for entered in reversed(self.below) if not entered.is_async), None)


@dataclass(slots=True)
class Expected:
    """The expected recording of a program, by thread (the system's ids)."""

    threads: dict[int, list[Entered]] = field(default_factory=dict)


turns = st.builds(
    Turn,
    thread=st.integers(min_value=0, max_value=MOST_THREADS - 1),
    enters=st.booleans(),
    which=st.sampled_from([-1, -1, -1, 0, 1, -2]),  # most turns leave the latest range
)
programs = st.lists(turns, max_size=60)


def run(program: Iterable[Turn]) -> Expected:
    """Run a program, each turn on its thread, one after the other."""
    pools = [ThreadPoolExecutor(1) for _ in range(MOST_THREADS)]
    system_numbers = [pool.submit(threading.get_native_id).result() for pool in pools]
    expected = Expected()
    is_open: list[tuple[record_function, Entered]] = []
    for number, turn in enumerate(program):
        mine = [entered for _, entered in is_open if entered.thread == turn.thread]
        if turn.enters:
            scope = record_function(f"range {number}")
            pools[turn.thread].submit(scope.__enter__).result()
            entered = Entered(name=scope.name, thread=turn.thread, below=mine)
            expected.threads.setdefault(system_numbers[turn.thread], []).append(entered)
            is_open.append((scope, entered))
        elif is_open:
            scope, entered = is_open.pop(turn.which % len(is_open))
            pools[turn.thread].submit(scope.__exit__).result()
            entered.is_unfinished = False
            entered.is_async = not mine or mine[-1] is not entered
    for pool in pools:
        pool.shutdown()
    return expected
