"""Ranges leave no memory and no references behind, however they are used."""

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from support.programs.windows import Window

from pytest_opprof import range_pop, range_push, record_function


@record_function("documented")
def documented() -> None: ...


async def coroutine() -> int:
    return 1


def generator() -> Iterator[int]:
    yield 1


USES = 10_000


def use_with() -> None:
    name = "leak"
    for _ in range(USES):
        with record_function(name, "text"):
            pass


def use_decorator() -> None:
    for _ in range(USES):
        record_function("leak")(lambda: None)()


def use_calls() -> None:
    decorated = record_function("leak")(lambda: None)
    for _ in range(USES):
        decorated()


def use_coroutines() -> None:
    decorated = record_function("leak")(coroutine)
    for _ in range(USES):
        with pytest.raises(StopIteration):
            decorated().send(None)


def use_generators() -> None:
    decorated = record_function("leak")(generator)
    for _ in range(USES):
        next(decorated())  # each is dropped while suspended


def use_pushes() -> None:
    for _ in range(USES):
        range_push("leak")
        range_pop()


def use_errors() -> None:
    for _ in range(USES):
        with pytest.raises(TypeError):
            record_function("leak", 3)  # type: ignore[arg-type]  # that is what fails


def use_subclass() -> None:
    class Sub(record_function):
        pass

    for _ in range(USES):
        scope = Sub("leak")
        scope.__init__("leak again", "text")  # type: ignore[misc]  # allowed, as for any Python class
        with scope, scope, scope:
            pass


@pytest.mark.slow
@pytest.mark.parametrize("records", [False, True], ids=["idle", "recording"])
@pytest.mark.parametrize(
    "use",
    [
        use_with,
        use_decorator,
        use_calls,
        use_coroutines,
        use_generators,
        use_pushes,
        use_errors,
        use_subclass,
    ],
    ids=lambda use: use.__name__,
)
def test_uses_leave_nothing_behind(use: Callable[[], None], *, records: bool) -> None:
    def measured() -> tuple[int, int, int, int]:
        gc.collect()
        held = (sys.getrefcount(record_function), sys.getrefcount(type(documented)), sys.getrefcount("leak"))
        return (tracemalloc.get_traced_memory()[0], *held)

    def run() -> None:
        if records:
            with Window():
                use()
        else:
            use()

    run()  # objects that are made once
    tracemalloc.start()
    try:
        totals = [measured()]
        for _ in range(3):
            run()
            totals.append(measured())
    finally:
        tracemalloc.stop()
    growth = [
        [now - then for now, then in zip(after, before, strict=True)] for before, after in pairwise(totals)
    ]
    # A leak is in every run; allocations of another thread of this process (pytest-xdist's) are not.
    kept_bytes, *references = (min(column, key=abs) for column in zip(*growth, strict=True))
    assert kept_bytes < USES  # not even a byte a use
    assert all(abs(count) < 100 for count in references)
