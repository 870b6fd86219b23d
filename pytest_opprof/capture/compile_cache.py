"""Whether torch.compile made code anew or took it from a cache: what it runs may be another choice then."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

COLD: Final = "cold"
WARM: Final = "warm"
# By the group and name that torch counts under (torch._dynamo.utils.counters, torch 2.4 and later).
_MADE: Final = (("inductor", "fxgraph_cache_miss"), ("inductor", "fxgraph_cache_bypass"))
_TAKEN: Final = (("inductor", "fxgraph_cache_hit"), ("aot_autograd", "autograd_cache_hit"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """How many graphs this process has compiled so far.

    Attributes:
        made: Of them, how many anew.
        taken: How many came from a cache.
    """

    made: int = 0
    taken: int = 0

    def state_since(self, before: Compiled) -> str:
        """``cold`` where something was made anew since then, ``warm`` where caches had all; else empty."""
        if self.made > before.made:
            return COLD
        return WARM if self.taken > before.taken else ""


def compiled() -> Compiled:
    """What torch has counted; nothing where this process has not loaded its compiler."""
    counters: Mapping[str, Mapping[str, int]] = getattr(_dynamo(), "counters", {})
    made, taken = (
        sum(counters[group].get(name, 0) for group, name in names if group in counters)
        for names in (_MADE, _TAKEN)
    )
    return Compiled(made=made, taken=taken)


def _dynamo() -> Any:
    return sys.modules.get("torch._dynamo.utils")
