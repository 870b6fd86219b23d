"""Functions whose calls a test knows in advance, by their names in a recording."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Generator, Iterator

from pytest_opprof import record_function


class Nested:
    @staticmethod
    def run() -> None:
        pass


def run() -> None:
    pass


def leaf(value: object = None) -> object:
    return value


def recurse(depth: int) -> int:
    return recurse(depth - 1) if depth else 0


def measure_length() -> int:
    return len((1, 2))


def fail() -> None:
    raise ValueError


def fail_in_c() -> None:
    divmod(1, 0)


def catch() -> None:
    with contextlib.suppress(ValueError):
        fail()


def catch_here() -> None:
    try:
        fail()
    except ValueError:
        leaf()


def catch_from_c() -> None:
    try:
        fail_in_c()
    except ZeroDivisionError:
        leaf()


def count_to(limit: int) -> Generator[int]:
    for number in range(limit):
        leaf()
        yield number


def drain() -> int:
    total = 0
    for number in count_to(2):
        total += number
    return total


def throw_into_generator() -> None:
    running = count_to(3)
    next(running)
    try:
        running.throw(ValueError)
    except ValueError:
        leaf()


async def pause() -> None:
    await asyncio.sleep(0)


async def count_slowly(limit: int) -> AsyncIterator[int]:
    for number in range(limit):
        await pause()
        yield number


async def add_up() -> int:
    total = 0
    async for number in count_slowly(2):
        total += number
    return total


@contextlib.contextmanager
def managed() -> Iterator[None]:
    with record_function("managed"):
        yield


def work_in_managed() -> None:
    with managed(), record_function("inside"):
        leaf()


def work_after_managed() -> None:
    with record_function("outer"):
        with managed():
            leaf()
        with record_function("after"):
            leaf()


def sort_by_key() -> list[int]:
    return sorted([2, 1], key=lambda value: -value)
