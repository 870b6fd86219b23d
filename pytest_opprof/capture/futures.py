"""Ranges that end when a future does."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable
from typing import Any

_Ending = Callable[..., None]


def end_with(ending: _Ending, future: Any) -> Any:
    """Have a range end, by `ending`, as soon as a future of torch, a thread pool or asyncio has its outcome.

    The result is a future of the same kind, which gets the same outcome after the range has ended. `ending`
    may run on any thread.
    """
    if isinstance(future, concurrent.futures.Future):
        return _of_threads(ending, future)
    if isinstance(future, asyncio.Future):
        return _of_a_loop(ending, future)
    then = getattr(future, "then", None)
    if then is not None and callable(getattr(future, "value", None)):
        return then(lambda done: _value_after(ending, done))
    raise TypeError(
        "a range ends with a future of torch.futures, concurrent.futures or asyncio, "
        f"not with {type(future).__name__}"
    )


def _value_after(ending: _Ending, done: Any) -> Any:
    ending()
    return done.value()


def _of_threads(ending: _Ending, future: concurrent.futures.Future[Any]) -> concurrent.futures.Future[Any]:
    after: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def finish(done: concurrent.futures.Future[Any]) -> None:
        ending()
        if done.cancelled():
            after.cancel()
            after.set_running_or_notify_cancel()
        elif after.set_running_or_notify_cancel():
            _copy_outcome(done, after)

    future.add_done_callback(finish)
    return after


def _of_a_loop(ending: _Ending, future: asyncio.Future[Any]) -> asyncio.Future[Any]:
    after: asyncio.Future[Any] = future.get_loop().create_future()

    def finish(done: asyncio.Future[Any]) -> None:
        ending()
        if done.cancelled():
            after.cancel()
        elif not after.done():
            _copy_outcome(done, after)

    def cancel(given_up: asyncio.Future[Any]) -> None:
        if given_up.cancelled():
            future.cancel()

    future.add_done_callback(finish)
    after.add_done_callback(cancel)
    return after


def _copy_outcome(
    done: concurrent.futures.Future[Any] | asyncio.Future[Any],
    after: concurrent.futures.Future[Any] | asyncio.Future[Any],
) -> None:
    error = done.exception()
    if error is not None:
        after.set_exception(error)
    else:
        after.set_result(done.result())
