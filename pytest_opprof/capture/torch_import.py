"""Notice the import of torch, for a window that opened before it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from pytest_opprof.capture.torch_ops import imported_torch


@contextmanager
def on_torch_import(then: Callable[[], None]) -> Iterator[None]:
    """Call ``then`` right after the first import of torch, before the importing line continues."""
    finder = _Finder(then)
    if imported_torch() is None:
        sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        finder.leave()


def torch_is_awaited() -> bool:
    """Whether a window waits for torch's import."""
    return any(isinstance(finder, _Finder) for finder in sys.meta_path)


class _Finder:
    """Finds torch as usual, and makes its loader call `then` when it is done."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def leave(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        del path, target
        if name != "torch":
            return None
        self.leave()
        spec = importlib.util.find_spec(name)
        loader: Any = spec.loader if spec is not None else None
        if loader is None:
            return spec
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self._then()

        loader.exec_module = exec_module
        return spec
