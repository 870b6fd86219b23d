"""Your own ranges and marks for an ITT tool such as VTune: ``torch.profiler.itt``, without torch.

Without a tool they cost a call and do nothing::

    from pytest_opprof import itt

    with itt.range("epoch {}", 3):
        itt.mark("shuffled")
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

from pytest_opprof.capture import emission
from pytest_opprof.capture.emission import Target
from pytest_opprof.errors import CollectorError

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """Whether a tool listens: ``INTEL_LIBITTNOTIFY64`` names one, and it could be loaded."""
    return _listens()


@functools.cache
def _listens() -> bool:
    """Asked once, because a tool must be there from the start."""
    try:
        emission.open_tool(Target.ITT)
    except CollectorError:
        return False
    return True


def range_push(msg: str) -> int:
    """Begin a range on this thread, and return its depth: 0 for an outermost range."""
    _listens()
    return emission.range_push(Target.ITT, msg)


def range_pop() -> int:
    """End the range that this thread pushed last, and return its depth; -1 if there was none."""
    return emission.range_pop(Target.ITT)


def mark(msg: str) -> None:
    """Note an instant on this thread."""
    _listens()
    emission.mark(Target.ITT, msg)


@contextmanager
def range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:  # noqa: A001  # torch's name
    """A range around a block or, as a decorator, each call; ``msg.format`` gets the other arguments."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
