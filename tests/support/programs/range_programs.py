"""Programs of ranges that hypothesis makes up, run for real on threads, and what a recording says of them."""

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
    """What one thread does next.

    Attributes:
        thread: Whose turn it is.
        enters: It enters a new range, rather than leave one.
        which: Of the open ranges, oldest first and counted around, the one that it leaves.
    """

    thread: int
    enters: bool
    which: int = 0


@dataclass(slots=True, kw_only=True)
class Entered:
    """One enter, and what became of it."""

    name: str
    thread: int
    below: list[Entered]  # open on its thread when it began, outermost first
    is_async: bool = False
    is_unfinished: bool = True

    @property
    def caller(self) -> Entered | None:
        """The nearest range below that is not an asynchronous one."""
        return next((entered for entered in reversed(self.below) if not entered.is_async), None)


@dataclass(slots=True)
class Expected:
    """What a recording of a program says, thread by thread (their system's numbers)."""

    threads: dict[int, list[Entered]] = field(default_factory=dict)


turns = st.builds(
    Turn,
    thread=st.integers(min_value=0, max_value=MOST_THREADS - 1),
    enters=st.booleans(),
    which=st.sampled_from([-1, -1, -1, 0, 1, -2]),  # most leave the latest
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
