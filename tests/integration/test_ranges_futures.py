"""Ranges that end with a future: of torch, of threads and of an event loop."""

import asyncio
import concurrent.futures
import importlib.util
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pytest_opprof import FunctionEvent, profile, record_function


def event_of(prof: profile, name: str) -> FunctionEvent:
    (event,) = (event for event in prof.events() if event.name == name)
    return event


def torch_future() -> Any:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    import torch  # only where it is there

    return torch.futures.Future()


def result_of(future: Any) -> Any:
    return future.wait() if hasattr(future, "wait") else future.result(timeout=10)


each = pytest.mark.parametrize("make", [concurrent.futures.Future, torch_future], ids=["threads", "torch"])


@each
def test_range_lasts_until_its_future_is_done(make: Callable[[], Any]) -> None:
    future = make()
    with profile() as prof:
        with record_function("remote") as scope:
            after = scope._call_end_callbacks_on_future(future)
        with record_function("meanwhile"):
            pass
        thread = threading.Thread(target=future.set_result, args=(7,))
        thread.start()
        thread.join()
        assert result_of(after) == 7
        with record_function("later"):
            pass
    remote, meanwhile, later = (event_of(prof, name) for name in ("remote", "meanwhile", "later"))
    assert remote.is_async
    assert remote.time_range.end > meanwhile.time_range.end
    assert remote.time_range.end <= later.time_range.start
    assert (remote.cpu_children, meanwhile.cpu_parent, later.cpu_parent) == ([], None, None)


@each
def test_range_of_a_finished_future_ends_at_once(make: Callable[[], Any]) -> None:
    future = make()
    future.set_result("there already")
    with profile() as prof, record_function("remote") as scope:
        assert result_of(scope._call_end_callbacks_on_future(future)) == "there already"
        with record_function("inside"):
            pass
    assert event_of(prof, "remote").time_range.end <= event_of(prof, "inside").time_range.start


@each
def test_failure_reaches_the_waiter(make: Callable[[], Any]) -> None:
    future = make()
    with profile() as prof, record_function("remote") as scope:
        after = scope._call_end_callbacks_on_future(future)
        future.set_exception(KeyError("lost"))
    with pytest.raises(Exception, match="lost"):
        result_of(after)
    assert event_of(prof, "remote").cpu_time_total > 0


def test_cancelled_futures_end_their_range() -> None:
    future: concurrent.futures.Future[None] = concurrent.futures.Future()
    with profile() as prof, record_function("remote") as scope:
        after = scope._call_end_callbacks_on_future(future)
        future.cancel()
    assert after.cancelled()
    assert not event_of(prof, "remote").is_unfinished


def test_future_that_never_comes_leaves_the_range_open() -> None:
    with profile() as prof, record_function("remote") as scope:
        scope._call_end_callbacks_on_future(concurrent.futures.Future())
    assert event_of(prof, "remote").is_unfinished


def test_second_future_is_refused() -> None:
    future: concurrent.futures.Future[None] = concurrent.futures.Future()
    scope = record_function("remote")
    with pytest.raises(RuntimeError, match="outside of the range"):
        scope._call_end_callbacks_on_future(future)
    with scope:
        scope._call_end_callbacks_on_future(future)
        with pytest.raises(RuntimeError, match=r"_call_end_callbacks_on_future can only be called once\."):
            scope._call_end_callbacks_on_future(future)
    with scope:  # once per enter
        scope._call_end_callbacks_on_future(future)


def test_non_future_is_refused_and_the_range_continues() -> None:
    with profile() as prof, record_function("remote") as scope:
        with pytest.raises(TypeError, match=r"torch\.futures, concurrent\.futures or asyncio, not with int"):
            scope._call_end_callbacks_on_future(7)
        with record_function("inside"):
            pass
    assert event_of(prof, "inside").cpu_parent is event_of(prof, "remote")


def test_asyncio_tasks_end_their_ranges() -> None:
    async def work(number: int) -> int:
        await asyncio.sleep(0)
        return number

    async def main() -> list[int]:
        afters = []
        for number in range(3):
            with record_function(f"task {number}") as scope:
                afters.append(scope._call_end_callbacks_on_future(asyncio.ensure_future(work(number))))
        results: list[int] = await asyncio.gather(*afters)
        return results

    with profile() as prof:
        assert asyncio.run(main()) == [0, 1, 2]
    for number in range(3):
        event = event_of(prof, f"task {number}")
        assert event.is_async
        assert event.cpu_parent is None
        assert event.cpu_time_total > 0


def test_cancelling_the_outcome_cancels_the_task() -> None:
    async def main() -> tuple[bool, bool]:
        task = asyncio.ensure_future(asyncio.sleep(60))
        with record_function("task") as scope:
            after = scope._call_end_callbacks_on_future(task)
        after.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return task.cancelled(), after.cancelled()

    with profile() as prof:
        assert asyncio.run(main()) == (True, True)
    assert not event_of(prof, "task").is_unfinished
