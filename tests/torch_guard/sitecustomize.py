"""Makes torch's own profiler raise, in every Python process that has this folder on its path.

Our capture is our own: a test that reached torch's profiler would prove nothing. The folder is put on
PYTHONPATH by tests/conftest.py, so that the guard also holds in the sessions and programs that tests start.
"""

import os
import sys
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

ALLOW_VARIABLE = "OPPROF_TESTS_ALLOW_TORCH_PROFILER"
_GUARDED = ("_prepare_profiler", "_enable_profiler")
# torch.autograd.profiler keeps its own references to the first two's names.
_HOLDERS = ("torch._C._autograd", "torch.autograd", "torch.autograd.profiler")


def _guarded(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def guard(*args: object, **options: object) -> object:
        # checked at each call: one process runs oracle tests and others
        if ALLOW_VARIABLE not in os.environ:
            msg = f"torch's {name} was called in a test of our own capture (only tests/oracle may)"
            raise AssertionError(msg)
        return original(*args, **options)

    guard.opprof_guard = True  # type: ignore[attr-defined]  # a mark, so that guarding twice is once
    return guard


def guard_torch() -> None:
    """Put the guard into torch's modules, which must be imported."""
    for holder in (sys.modules[name] for name in _HOLDERS):
        for name in _GUARDED:
            original = getattr(holder, name)
            if not hasattr(original, "opprof_guard"):
                setattr(holder, name, _guarded(name, original))


class _TorchFinder(MetaPathFinder):
    """Finds torch as usual, and guards it right after its import."""

    def find_spec(self, fullname: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != "torch":
            return None
        spec = PathFinder.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            _guard_after(spec.loader)
        return spec


def _guard_after(loader: Loader) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        guard_torch()

    loader.exec_module = exec_module  # type: ignore[method-assign]  # this one loader, of this one import


if "torch" in sys.modules:
    guard_torch()
elif not any(type(finder).__name__ == "_TorchFinder" for finder in sys.meta_path):
    sys.meta_path.insert(0, _TorchFinder())
