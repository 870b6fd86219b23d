"""Ranges in asyncio tasks and async generators: each ends its own record, in whatever order."""

import asyncio
import contextlib
import gc
from collections import Counter
from collections.abc import AsyncGenerator, Callable

import pytest
from support.programs.windows import Window, asynchronous, names, unfinished

from pytest_opprof import record_function

TASKS = 50


def test_tasks_end_their_own_ranges() -> None:
    """Task k runs k more turns than the first, so they end in the order in which they started."""
    ended: list[int] = []

    async def work(number: int) -> None:
        with record_function(f"task {number}"):
            for _ in range(number + 1):
                await asyncio.sleep(0)
        ended.append(number)

    async def main() -> None:
        await asyncio.gather(*(work(number) for number in range(TASKS)))

    with Window() as window:
        asyncio.run(main())
    recording = window.recording
    assert names(recording) == [f"task {number}" for number in range(TASKS)]
    assert ended == list(range(TASKS))
    assert not any(unfinished(recording))
    assert asynchronous(recording) == [True] * (TASKS - 1) + [False]
    assert recording.stats.unmatched_ends == 0
    ends = [start + length for start, length in zip(recording.start_ns, recording.duration_ns, strict=True)]
    assert ends == sorted(ends)


def test_calls_of_a_decorated_coroutine_are_separate() -> None:
    @record_function("task")
    async def work(turns: int) -> int:
        for _ in range(turns):
            await asyncio.sleep(0)
        return turns

    async def main() -> list[int]:
        return await asyncio.gather(*(work(turns) for turns in range(1, TASKS + 1)))

    with Window() as window:
        assert asyncio.run(main()) == list(range(1, TASKS + 1))
    recording = window.recording
    assert Counter(names(recording)) == {"task": TASKS}
    assert asynchronous(recording) == [True] * (TASKS - 1) + [False]
    ends = [start + length for start, length in zip(recording.start_ns, recording.duration_ns, strict=True)]
    assert ends == sorted(ends)


def test_cancelled_coroutine_ends_its_range() -> None:
    @record_function("cancelled")
    async def forever() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        task = asyncio.create_task(forever())
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    with Window() as window:
        asyncio.run(main())
    assert names(window.recording) == ["cancelled"]
    assert unfinished(window.recording) == [False]


@record_function("conversation")
async def conversation(log: list[str]) -> AsyncGenerator[str, str]:
    """A generator that answers what it is sent, and logs how it ends."""
    said = "hello"
    try:
        while said != "stop":
            try:
                said = yield f"heard {said}"
            except KeyError:
                said = "a key error"
    finally:
        await asyncio.sleep(0)
        log.append("closed")


async def iterate(log: list[str]) -> list[str]:
    return [said async for said in _only_first(conversation(log))]


async def _only_first(generator: AsyncGenerator[str, str]) -> AsyncGenerator[str, None]:
    yield await anext(generator)
    await generator.aclose()


async def send(log: list[str]) -> list[str]:
    generator = conversation(log)
    heard = [await anext(generator), await generator.asend("hi")]
    with pytest.raises(StopAsyncIteration):
        await generator.asend("stop")
    return heard


async def throw(log: list[str]) -> list[str]:
    generator = conversation(log)
    heard = [await anext(generator), await generator.athrow(KeyError("k"))]
    with pytest.raises(ValueError, match="not caught"):
        await generator.athrow(ValueError("not caught"))
    return heard


async def close(log: list[str]) -> list[str]:
    generator = conversation(log)
    heard = [await anext(generator)]
    await generator.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(generator)
    return heard


async def abandon(log: list[str]) -> list[str]:
    heard = [await anext(conversation(log))]
    gc.collect()
    for _ in range(3):
        await asyncio.sleep(0)  # the loop closes dropped generators
    return heard


async def close_before_the_start(log: list[str]) -> list[str]:
    await conversation(log).aclose()
    log.append("closed")
    return []


@pytest.mark.parametrize(
    ("use", "heard"),
    [
        (iterate, ["heard hello"]),
        (send, ["heard hello", "heard hi"]),
        (throw, ["heard hello", "heard a key error"]),
        (close, ["heard hello"]),
        (abandon, ["heard hello"]),
        (close_before_the_start, []),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_decorated_async_generator_passes_everything_on(
    use: Callable[[list[str]], "asyncio.Future[list[str]]"], heard: list[str]
) -> None:
    log: list[str] = []

    async def main() -> list[str]:
        return await use(log)

    with Window() as window:
        assert asyncio.run(main()) == heard
    assert log == ["closed"]
    assert names(window.recording) == (["conversation"] if heard else [])
    assert not any(unfinished(window.recording))
