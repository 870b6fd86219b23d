"""What torch.compile did, as torch counts it: graphs, and whether their code came from a cache."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pytest_opprof.capture.folders import start_folder

COLD: Final = "cold"
WARM: Final = "warm"
# Groups and names in torch._dynamo.utils.counters (torch 2.4 and later).
_MADE: Final = (("inductor", "fxgraph_cache_miss"), ("inductor", "fxgraph_cache_bypass"))
_TAKEN: Final = (("inductor", "fxgraph_cache_hit"), ("aot_autograd", "autograd_cache_hit"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """How many graphs this process has compiled so far."""

    made: int = 0  # how many were compiled anew
    taken: int = 0  # how many came from a cache

    def state_since(self, before: Compiled) -> str:
        """``cold`` if something was compiled anew since, ``warm`` if caches had everything, else empty."""
        if self.made > before.made:
            return COLD
        return WARM if self.taken > before.taken else ""


def compiled() -> Compiled:
    """Torch's counts so far; 0 if this process has not loaded torch's compiler."""
    made, taken = (sum(_counted(group).get(name, 0) for group, name in names) for names in (_MADE, _TAKEN))
    return Compiled(made=made, taken=taken)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilations:
    """What torch.compile did in a step."""

    graphs: int = 0
    # how often functions were compiled again, by reason
    recompiles: Mapping[str, int] = field(default_factory=dict)
    # how often functions were compiled in more than one graph, by reason
    graph_breaks: Mapping[str, int] = field(default_factory=dict)


class CompileWatch:
    """Reads torch's counters before and after a step; they may be reset in between."""

    def __init__(self) -> None:
        self._graphs = 0
        self._breaks: Mapping[str, int] = {}
        self._last: object = None

    def begin(self) -> None:
        """Read the counters before a step."""
        self._graphs = _counted("stats").get("unique_graphs", 0)
        self._breaks = dict(_counted("graph_break"))
        entries = _entries()
        self._last = entries[-1] if entries else None

    def end(self) -> Compilations:
        """What torch.compile did in the step that has ended."""
        graphs = _counted("stats").get("unique_graphs", 0)
        breaks = Counter[str]()
        for reason, count in _counted("graph_break").items():
            if more := _more(count, self._breaks.get(reason, 0)):
                breaks[_told(_place_of_break(reason), _first_line(reason))] += more
        return Compilations(
            graphs=_more(graphs, self._graphs), recompiles=Counter(self._recompiled()), graph_breaks=breaks
        )

    def _recompiled(self) -> Iterator[str]:
        # Torch keeps the last 64: more than that in one step are counted as 64.
        for entry in reversed(_entries()):
            if entry is self._last:
                return
            if _is_recompilation(entry):
                # "0/1: the guard  # its line": the numbers depend on what was compiled before.
                reason = _first_line(getattr(entry, "recompile_reason", None) or "")
                guard = re.sub(r"^\S*\d+/\d+: ", "", reason).partition(" # ")[0].strip()
                yield _told(_place(entry.co_name, entry.co_filename), guard)


def _more(after: int, before: int) -> int:
    return after - before if after >= before else after


def _is_recompilation(entry: Any) -> bool:
    if not getattr(entry, "is_forward", True):
        return False  # the backward pass of a graph has its own entry
    if hasattr(entry, "recompile_reason"):
        return entry.recompile_reason is not None
    compilation = str(entry.compile_id).rpartition("/")[2].partition("_")[0]  # of the frame, from 0
    return compilation not in {"", "0"}


def _told(*parts: str) -> str:
    """``forward, model.py: tensor 'x' size mismatch at index 0. expected 3, actual 4``."""
    return ": ".join(filter(None, parts)) or "torch does not say why"


def _place(function: str | None, file: str | None) -> str:
    """``forward, model.py``, without a line, so that runs of two commits can be compared."""
    if not function or not file:
        return ""
    function = re.sub(r"^torch_dynamo_resume_in_(.*)_at_\d+$", r"\1", function)
    here = start_folder()
    return f"{function}, {Path(file).relative_to(here) if Path(file).is_relative_to(here) else file}"


def _place_of_break(reason: str) -> str:
    for told in reversed(getattr(_dynamo(), "graph_break_reasons", ())):
        if told.reason == reason and told.user_stack:
            frame = told.user_stack[-1]
            return _place(frame.name, frame.filename)
    return ""


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].strip()


def _counted(group: str) -> Mapping[str, int]:
    counters: Mapping[str, Mapping[str, int]] = getattr(_dynamo(), "counters", {})
    return counters.get(group, {})


def _entries() -> list[Any]:
    """Torch's records of its last compilations, oldest first."""
    return list(getattr(_dynamo(), "_compilation_metrics", ()))


def _dynamo() -> Any:
    return sys.modules.get("torch._dynamo.utils")
