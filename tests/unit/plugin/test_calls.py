"""A test's function, repeated: its arguments, its result, its context."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest

from pytest_opprof.plugin.calls import Calls, _is_unittest, is_of_the_call, replaced

MakeItem = Callable[[str], pytest.Item]


class Log:
    """Three calls, and the hooks around them."""

    def __init__(self) -> None:
        self.entries: list[str] = []

    def calls(self) -> Calls:
        try:
            for number in range(3):
                yield self.around(number)
        finally:
            self.entries.append("closed")

    @contextmanager
    def around(self, number: int) -> Iterator[None]:
        self.entries.append(f"in {number}")
        yield
        self.entries.append(f"out {number}")


COMPLETE = ["in 0", "out 0", "in 1", "out 1", "in 2", "out 2", "closed"]


def function_of(item: pytest.Item) -> Callable[..., object]:
    assert isinstance(item, pytest.Function)
    function: Callable[..., object] = item.obj
    return function


def test_the_first_calls_result_is_returned(make_item: MakeItem) -> None:
    item = make_item("RESULTS = []\ndef test_it(a=0): RESULTS.append(a); return len(RESULTS) + a")
    log = Log()
    with replaced(item, log.calls):
        assert function_of(item)(a=5) == 6
    assert log.entries == COMPLETE
    assert function_of(item)(a=5) == 9, "put back: called once"


def test_a_coroutine_function_stays_one(make_item: MakeItem) -> None:
    item = make_item("async def test_it(): return 7")
    log = Log()
    with replaced(item, log.calls):
        function = function_of(item)
        assert inspect.iscoroutinefunction(function)
        assert asyncio.run(function()) == 7
    assert log.entries == COMPLETE


def test_an_exception_ends_the_calls_at_once(make_item: MakeItem) -> None:
    item = make_item("def test_it(): raise KeyError('mine')")
    log = Log()
    with replaced(item, log.calls), pytest.raises(KeyError, match="mine") as caught:
        function_of(item)()
    assert log.entries == ["in 0", "closed"]
    # pytest shows the test's own frames and hides ours
    assert [entry.name for entry in caught.traceback.filter(caught)][-1] == "test_it"
    assert "run" not in [entry.name for entry in caught.traceback.filter(caught)]


def test_function_is_restored_after_a_failure(make_item: MakeItem) -> None:
    item = make_item("def test_it(): pass")
    before = function_of(item)
    with pytest.raises(RuntimeError), replaced(item, Log().calls):
        raise RuntimeError
    assert function_of(item) is before


def test_a_wrapper_looks_like_what_it_wraps(make_item: MakeItem) -> None:
    item = make_item("def test_it(a, *, b): 'What it shows.'")
    before = function_of(item)
    with replaced(item, Log().calls):
        after = function_of(item)
    assert inspect.signature(after) == inspect.signature(before)
    assert (after.__doc__, after.__name__) == ("What it shows.", "test_it")


@pytest.mark.parametrize(
    ("source", "is_unittest"),
    [
        ("def test_it(): pass", False),
        ("class TestIt:\n    def test_it(self): pass", False),
        ("import unittest\nclass TestIt(unittest.TestCase):\n    def test_it(self): pass", True),
    ],
)
def test_tests_of_unittest_are_known(make_item: MakeItem, source: str, is_unittest: bool) -> None:
    item = make_item(source)
    assert isinstance(item, pytest.Function)
    assert _is_unittest(item) is is_unittest


class OwnError(BaseException):
    """Of a project, which pytest reports as a failure."""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, False),
        (OwnError(), True),
        (SystemExit(1), True),
        (asyncio.CancelledError(), True),
        (pytest.skip.Exception(), True),
        (BaseExceptionGroup("", [OwnError()]), True),
        (BaseExceptionGroup("", [OwnError(), KeyboardInterrupt()]), False),
        (KeyboardInterrupt(), False),
        (GeneratorExit(), False),
        (pytest.exit.Exception(), False),
    ],
    ids=repr,
)
def test_whatever_pytest_reports_is_of_the_call(error: BaseException | None, expected: bool) -> None:
    assert is_of_the_call(error) is expected


async def _awaits_a_cancelled_task() -> None:
    other = asyncio.ensure_future(asyncio.sleep(9))
    other.cancel()
    await other


async def _is_cancelled() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("test", "expected"), [(_awaits_a_cancelled_task, True), (_is_cancelled, False)], ids=["awaited", "own"]
)
def test_only_another_tasks_cancellation_is_of_the_call(
    test: Callable[[], Awaitable[None]], expected: bool
) -> None:
    async def run() -> bool:
        try:
            await test()
        except asyncio.CancelledError as error:
            return is_of_the_call(error)
        return not expected

    assert asyncio.run(run()) is expected
