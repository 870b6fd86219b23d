"""Walks through trees of events, such as those of ``kineto_results.experimental_event_tree()``."""

from __future__ import annotations

import functools
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

_PYTHON_CALL: Final = re.compile(r"\.py\(.*\)")


def _traverse(
    tree: Sequence[Any],
    next_fn: Callable[[deque[Any]], Any],
    children_fn: Callable[[Any], Sequence[Any]] = lambda event: event.children,
    reverse: bool = False,  # noqa: FBT001, FBT002  # torch's signature
) -> Iterator[Any]:
    """Each event of a tree, given its roots. `next_fn` takes the next one from those that are waiting."""
    order: Callable[[Sequence[Any]], Iterable[Any]] = reversed if reverse else iter
    waiting = deque(order(tree))
    while waiting:
        event = next_fn(waiting)
        yield event
        waiting.extend(order(children_fn(event)))


# In preorder, and level by level. They are partials as in torch, so that callers may override arguments.
traverse_dfs = functools.partial(_traverse, next_fn=deque.pop, reverse=True)
traverse_bfs = functools.partial(_traverse, next_fn=deque.popleft, reverse=False)


def last_first(tree: Sequence[Any]) -> Iterator[Any]:
    """Each event before those inside it, and the last sibling first: the order of torch's metrics."""
    return _traverse(tree, next_fn=deque.pop)


def name_of(event: Any) -> str:
    """An event's name, which is a string in a tree but a method of a Kineto event."""
    name = event.name
    return str(name() if callable(name) else name)


def source_code_location(event: Any) -> str:
    """The innermost Python call around an event of a tree, the event itself included."""
    while event is not None:
        name = name_of(event)
        if _PYTHON_CALL.search(name):
            return name
        event = event.parent
    return "No source code location found"
