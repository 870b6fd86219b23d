"""Without native modules, ranges do for a program what the native ones do: nothing."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any, Self

import pytest

from pytest_opprof import _fast
from pytest_opprof.capture import unrecorded


@pytest.fixture(params=[_fast, unrecorded], ids=["native", "unrecorded"])
def ranges(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


def test_a_range_is_a_context_manager(ranges: Any) -> None:
    scope = ranges.record_function("work", args="batch=8")
    with scope as entered, scope:
        assert entered is scope
    assert (scope.name, scope.args, repr(scope)) == ("work", "batch=8", "record_function('work')")
    with pytest.raises(KeyError), scope:
        raise KeyError
    assert scope.__exit__() is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name"),
        ((3,), "'name' must be str, not int"),
        (("x", 3), "'args' must be str or None, not int"),
    ],
    ids=["nothing", "name", "args"],
)
def test_wrong_arguments_are_refused(ranges: Any, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ranges.record_function(*arguments)
    with pytest.raises(TypeError, match="must be str, not int"):
        ranges.range_push(3)
    with pytest.raises(TypeError, match="decorates a callable, not int"):
        ranges.record_function("x")(3)


def test_functions_of_all_kinds_are_decorated(ranges: Any) -> None:
    scope: unrecorded.record_function = ranges.record_function("work")

    @scope
    def plain(value: int) -> int:
        """Doubles."""
        return value * 2

    @scope
    def numbers() -> Iterator[int]:
        yield 1

    @scope
    async def awaited() -> int:
        return 3

    @scope
    async def streamed() -> AsyncIterator[int]:
        yield 4

    class Layer:
        @scope
        def method(self) -> int:
            return 5

        @scope
        @classmethod
        def made(cls) -> type:
            return cls

    async def all_of() -> list[int]:
        return [await awaited(), *[item async for item in streamed()]]

    assert (plain(1), plain.__name__, plain.__doc__) == (2, "plain", "Doubles.")
    assert list(numbers()) == [1]
    assert inspect.isgeneratorfunction(numbers)
    assert inspect.iscoroutinefunction(awaited)
    assert asyncio.run(all_of()) == [3, 4]
    assert (Layer().method(), Layer.made()) == (5, Layer)


def test_a_subclass_begins_and_ends_in_its_own_way() -> None:
    seen = []

    class Layer(unrecorded.record_function):
        def __init__(self) -> None:
            pass

        def __enter__(self) -> Self:
            seen.append(self.name)
            return self

    assert Layer()(len)("abc") == 3
    assert seen == [""]


def test_pushed_ranges_are_counted_by_thread(ranges: Any) -> None:
    assert (ranges.range_push("a"), ranges.range_push("b")) == (0, 1)
    with ThreadPoolExecutor(1) as other:
        assert other.submit(ranges.range_push, "c").result() == 0
    assert (ranges.range_pop(), ranges.range_pop()) == (1, 0)
    with pytest.raises(RuntimeError, match=r"range_pop\(\) without a range_push\(\) on this thread"):
        ranges.range_pop()


def test_the_future_of_a_range_is_its_own() -> None:
    future = object()
    with unrecorded.record_function("work") as scope:
        assert scope._call_end_callbacks_on_future(future) is future
