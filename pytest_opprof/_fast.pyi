from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

class record_function:
    name: str
    args: str | None
    def __init__(self, name: str, args: str | None = None) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None: ...
    def __call__(self, func: Callable[_P, _R]) -> Callable[_P, _R]: ...

def range_push(name: str, /) -> int: ...
def range_pop() -> int: ...
