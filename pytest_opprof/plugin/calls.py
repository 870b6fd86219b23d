"""Calls a test's function as often as a measurement needs, however pytest calls it."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import pytest
from _pytest.outcomes import Exit

if TYPE_CHECKING:
    from pytest_opprof.plugin.stepping import Stepping

_REPORTS: Final[tuple[str, ...]] = ("pytest_runtest_logreport", "pytest_exception_interact")

# More frames than pytest, its plugins and an IDE have; far below the 1,000 that Python allows.
_DEPTH: Final = 100

# They end more than a test's call.
_INTERRUPTIONS: Final = (KeyboardInterrupt, GeneratorExit, Exit)

# One per call, held open around it.
Calls = Generator[AbstractContextManager[None], None, None]


class MeasuredCall:
    """Held open around a call, which is a step. A class, because a generator would allocate there."""

    __slots__ = ("_decides", "_stepping")

    def __init__(self, stepping: Stepping, *, decides: bool) -> None:
        self._stepping = stepping
        self._decides = decides

    def __enter__(self) -> None:
        self._stepping.begin_step()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        self._stepping.end_step()
        return self._stepping.call_ended(error, decides=self._decides)


class CallAtFixedDepth:
    """Held open around a call that has as many frames around it everywhere, even in an xdist worker.

    Code that formats the stack, or recurses until Python's limit, would vary in instructions.
    """

    __slots__ = ()


def is_of_the_call(error: BaseException | None) -> bool:
    """Whether this failed or skipped a test's call; Ctrl-C, pytest.exit() and a cancelled task do not."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_of_the_call, error.exceptions))
    return error is not None and not isinstance(error, _INTERRUPTIONS) and not _cancels_the_test(error)


def _cancels_the_test(error: BaseException) -> bool:
    """Whether it ends the task of the test, as asyncio does at Ctrl-C, and not one that the test awaits."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or not isinstance(error, asyncio.CancelledError):
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs
        return False
    return bool(task and task.cancelling())


@contextlib.contextmanager
def replaced(item: pytest.Item, calls: Callable[[], Calls]) -> Iterator[None]:
    """Inside, pytest calls a test's function once for each of `calls`.

    A unittest method is looked up on its instance by some runners (IsolatedAsyncioTestCase), so it is
    replaced there too.
    """
    assert isinstance(item, pytest.Function), "the marker is refused on anything else"
    original = item.obj
    item.obj = replacement = _repeated(original, calls)
    instance = item.instance if _is_unittest(item) else None
    if instance is not None:
        setattr(instance, item.originalname, replacement)
    try:
        yield
    finally:
        item.obj = original
        if instance is not None:
            with contextlib.suppress(AttributeError):
                delattr(instance, item.originalname)


@contextlib.contextmanager
def unreported(item: pytest.Item) -> Iterator[None]:
    """Inside, keep a test's own reports, such as those of subtests, from all plugins.

    A hook's implementation cannot hide a call from others, so calls are caught where they are made.
    """
    relays = {id(vars(relay)): vars(relay) for relay in (item.ihook, item.config.hook)}.values()
    kept = [{name: relay[name] for name in _REPORTS if name in relay} for relay in relays]
    for relay in relays:
        relay.update(dict.fromkeys(_REPORTS, _unheard))
    try:
        yield
    finally:
        for relay, hooks in zip(relays, kept, strict=True):
            for name in _REPORTS:
                del relay[name]  # a folder's proxy makes its relays anew
            relay.update(hooks)


@contextlib.contextmanager
def unwarned() -> Iterator[None]:
    """Afterwards, forget the warnings that came inside: who records them has those of the first call.

    They are recorded meanwhile, because the test may look at them with `recwarn`.
    """
    # Set by the catch_warnings(record=True) of pytest or `recwarn`; one of ours would reset the filters.
    log = getattr(getattr(warnings, "_showwarnmsg_impl", None), "__self__", None)
    records: list[object] = log if isinstance(log, list) else []
    many = len(records)
    try:
        yield
    finally:
        del records[many:]


def _unheard(**_: object) -> list[object]:
    return []


def _is_unittest(item: pytest.Function) -> bool:
    # Never imported here: pytest knows what it made.
    return any(kind.__module__ == "_pytest.unittest" for kind in type(item).__mro__)


def _repeated(original: Callable[..., Any], calls: Callable[[], Calls]) -> Callable[..., Any]:
    """A function that returns what the first call returned."""
    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def run_async(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            results: list[Any] = []
            bound = functools.partial(original, *args, **kwargs)  # else the step would pack its arguments
            with contextlib.closing(calls()) as planned:
                for call in planned:
                    result = None
                    with call:
                        result = await bound()
                    results = results or [result]
            return results[0]

        return run_async

    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        results: list[Any] = []
        bound = functools.partial(original, *args, **kwargs)  # as above
        with contextlib.closing(calls()) as planned:
            for call in planned:
                result = None
                target = _at_fixed_depth(bound) if isinstance(call, CallAtFixedDepth) else bound
                with call:
                    result = target()
                results = results or [result]
        return results[0]

    return run


def _at_fixed_depth(call: Callable[[], Any]) -> Callable[[], Any]:
    """The call with the missing frames around it."""
    frame, depth = inspect.currentframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return functools.partial(_deeper, _DEPTH - depth, call)


# Two alternate: a traceback of one that calls itself shows three frames and a count.
def _deeper(missing: int, call: Callable[[], Any]) -> Any:
    return _deeper_still(missing - 1, call) if missing > 0 else call()


def _deeper_still(missing: int, call: Callable[[], Any]) -> Any:
    return _deeper(missing - 1, call) if missing > 0 else call()
