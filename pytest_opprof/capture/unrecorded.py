"""The ranges of `_fast` without an effect, where nothing can be recorded."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


class record_function:  # noqa: N801  # torch's name
    """A named range: a context manager, and a decorator of functions, coroutines and generators.

    Args:
        args: Text that a recording would keep with it.
    """

    name: str = ""
    args: str | None = None

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"record_function() argument 'name' must be str, not {type(name).__name__}")
        if not isinstance(args, str | None):
            raise TypeError(
                f"record_function() argument 'args' must be str or None, not {type(args).__name__}"
            )
        self.name = name
        self.args = args

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        pass

    def __call__(self, func: Callable[_P, _R]) -> Callable[_P, _R]:
        """The function itself, or a wrapper if a subclass acts around its calls."""
        if not callable(getattr(func, "__func__", func)):  # a classmethod cannot be called itself
            raise TypeError(f"record_function(...) decorates a callable, not {type(func).__name__}")
        if type(self) is record_function:
            return func
        # The module of `decorate` imports this one.
        ranges = importlib.import_module("pytest_opprof.capture.ranges")
        decorated: Callable[_P, _R] = ranges.decorate(self, func)
        return decorated

    def __repr__(self) -> str:
        return f"record_function({self.name!r})"

    def _call_end_callbacks_on_future(self, fut: Any, /) -> Any:
        return fut


class RecordFunctionFast(record_function):
    """A range that counts as an op.

    Args:
        input_values: Values whose shapes a recording would keep.
        keyword_values: Named values that a recording would keep.
    """

    def __init__(
        self,
        name: str,
        input_values: Sequence[object] | None = None,  # noqa: ARG002  # nothing is recorded
        keyword_values: Mapping[str, object] | None = None,  # noqa: ARG002
    ) -> None:
        super().__init__(name)


class _Pushed(threading.local):
    depth = 0


_pushed = _Pushed()


def range_push(name: str, /) -> int:
    """Begin a range on this thread; its depth, from 0."""
    if not isinstance(name, str):
        raise TypeError(f"range_push() argument must be str, not {type(name).__name__}")
    _pushed.depth += 1
    return _pushed.depth - 1


def range_pop() -> int:
    """End the range that this thread pushed last; its depth.

    Raises:
        RuntimeError: There is none.
    """
    if _pushed.depth == 0:
        raise RuntimeError("range_pop() without a range_push() on this thread")
    _pushed.depth -= 1
    return _pushed.depth
