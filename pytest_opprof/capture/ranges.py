"""The user's named ranges: the C types, and the Python code that they need."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any

from pytest_opprof.capture.native import RecordFunctionFast, range_pop, range_push, record_function

__all__ = ["RecordFunctionFast", "decorate", "range_pop", "range_push", "record_function"]


def decorate(scope: record_function, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that keeps a range like `scope` open while `function` runs, even if it is suspended.

    A C wrapper would time only the creation of a coroutine or generator, and would hide from
    ``inspect.iscoroutinefunction`` what it wraps.
    """
    if isinstance(function, staticmethod | classmethod):
        return type(function)(scope(function.__func__))
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


def _one_more(scope: record_function) -> record_function:
    """A range for one run of a function: several suspended runs may end in any order."""
    return record_function(scope.name, scope.args) if type(scope) is record_function else scope


def _coroutine(
    scope: record_function, function: Callable[..., Coroutine[Any, Any, Any]]
) -> Callable[..., Coroutine[Any, Any, Any]]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        with _one_more(scope):
            return await function(*args, **kwargs)

    return call


def _generator(
    scope: record_function, function: Callable[..., Generator[Any, Any, Any]]
) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with _one_more(scope):
            return (yield from function(*args, **kwargs))

    code = getattr(function, "__code__", None)
    is_awaitable = code is not None and code.co_flags & inspect.CO_ITERABLE_COROUTINE
    return types.coroutine(call) if is_awaitable else call


def _async_generator(
    scope: record_function, function: Callable[..., AsyncGenerator[Any, Any]]
) -> Callable[..., AsyncGenerator[Any, Any]]:
    """Pass on what is sent and thrown in, like ``yield from``, which is not allowed here."""

    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner = function(*args, **kwargs)
        with _one_more(scope):
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
