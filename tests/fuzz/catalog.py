"""Every reader that is fuzzed, and its module: a process that fuzzes one imports no other's."""

from __future__ import annotations

import importlib
from typing import Final

from fuzz.target import Target

_MODULES: Final = {
    "documents": ("run", "comparison", "ab", "accepted"),
    "stores": ("baseline", "counts", "git-ref"),
    "histories": ("history", "import"),
    "traces": ("trace", "nvprof", "nsys"),
    "left": ("session", "plan", "bisection"),
    "others": ("benchmark", "artifact", "event", "comment"),
    "forges": ("upload",),
}
NAMES: Final = tuple(name for names in _MODULES.values() for name in names)


def target_of(name: str) -> Target:
    """The target with a name.

    Raises:
        StopIteration: There is none.
    """
    place = next(module for module, names in _MODULES.items() if name in names)
    targets: tuple[Target, ...] = importlib.import_module(f"fuzz.targets.{place}").TARGETS
    return next(target for target in targets if target.name == name)
