"""Named ranges of the user's own: the C types, and what they need of Python."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any

from pytest_opprof._fast import range_pop, range_push, record_function

__all__ = ["range_pop", "range_push", "record_function", "wrap_suspending"]


def wrap_suspending(scope: record_function, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that holds `scope` open while `function` runs, however often it is suspended.

    A C wrapper would time only the making of a coroutine or generator, and would hide from
    ``inspect.iscoroutinefunction`` what it wraps.
    """
    if inspect.isasyncgenfunction(function):
        return functools.wraps(function)(_async_generator(scope, function))
    if inspect.iscoroutinefunction(function):
        return functools.wraps(function)(_coroutine(scope, function))
    if inspect.isgeneratorfunction(function):
        return functools.wraps(function)(_generator(scope, function))

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with scope:
            return function(*args, **kwargs)

    return call


def _coroutine(
    scope: record_function, function: Callable[..., Coroutine[Any, Any, Any]]
) -> Callable[..., Coroutine[Any, Any, Any]]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        with scope:
            return await function(*args, **kwargs)

    return call


def _generator(
    scope: record_function, function: Callable[..., Generator[Any, Any, Any]]
) -> Callable[..., Generator[Any, Any, Any]]:
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with scope:
            return (yield from function(*args, **kwargs))

    return call


def _async_generator(
    scope: record_function, function: Callable[..., AsyncGenerator[Any, Any]]
) -> Callable[..., AsyncGenerator[Any, Any]]:
    """Hand on what is sent and thrown in, as ``yield from`` does where it is allowed."""

    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner = function(*args, **kwargs)
        with scope:
            try:
                item = await anext(inner)
                while True:
                    try:
                        sent = yield item
                    except GeneratorExit:
                        await inner.aclose()
                        raise
                    except BaseException as error:  # noqa: BLE001  # whatever was thrown in belongs to `inner`
                        item = await inner.athrow(error)
                    else:
                        item = await inner.asend(sent)
            except StopAsyncIteration:
                return

    return call
