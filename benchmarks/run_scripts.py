"""Compares ``opprof run`` with other profilers on an empty script and three others."""

from __future__ import annotations

import importlib.util
import random
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.child import processor_time_s
from benchmarks.table import Row, nanoseconds

_SCRIPTS: Final = Path(__file__).with_name("scripts")
_EMPTY: Final = "empty"
# The module that a script needs, and the script's name in a row.
_PROGRAMS: Final = {
    "calls": (None, "Python calls"),
    "arrays": ("numpy", "NumPy"),
    "training": ("torch", "import torch and train"),
}
_PLAIN: Final = "plain"
_OPS, _CALLS, _TRACE = "opprof run --no-stack", "opprof run", "opprof run --trace"
_OURS: Final = {
    _OPS: ("pytest_opprof", "run", "--no-stack"),
    _CALLS: ("pytest_opprof", "run"),
    _TRACE: ("pytest_opprof", "run", "--trace=out.json"),
}
_PEERS: Final = {
    "cProfile": ("cProfile", "-o", "out.prof"),
    "pyinstrument": ("pyinstrument", "-o", "out.txt"),
    "viztracer": ("viztracer", "--quiet", "-o", "out.json"),
}
# Each pair writes or prints the same kind of output. Plain Python shows our cost by itself.
_PAIRS: Final = ((_OPS, _PLAIN), (_CALLS, "cProfile"), (_CALLS, "pyinstrument"), (_TRACE, "viztracer"))
_ROUNDS: Final = 5


def rows(*, quick: bool) -> list[Row]:
    """Processor time of whole processes: the median of the rounds' ratios. Each round's order is random."""
    sides: dict[str, Sequence[str]] = {_PLAIN: (), **_OURS, **_PEERS}
    for missing in [name for name in _PEERS if importlib.util.find_spec(name) is None]:
        _tell_missing(missing)
        del sides[missing]
    table = _start_rows(_measured(_EMPTY, sides, quick=quick))
    for script, (needed, kind) in _PROGRAMS.items():
        if needed is not None and importlib.util.find_spec(needed) is None:
            _tell_missing(needed)
        else:
            table += _cost_rows(kind, _measured(script, sides, quick=quick))
    return table


def _tell_missing(name: str) -> None:
    print(f"{name} is not installed: its rows are left out", file=sys.stderr, flush=True)


def _measured(script: str, sides: Mapping[str, Sequence[str]], *, quick: bool) -> dict[str, list[float]]:
    """Each side's seconds, round by round."""
    found = defaultdict(list)
    order = list(sides)
    chance = random.Random(0)  # noqa: S311  # no secret
    with tempfile.TemporaryDirectory() as folder:
        for at in range(2 if quick else _ROUNDS + 1):
            chance.shuffle(order)
            for name in order:
                module = ("-m", *sides[name]) if sides[name] else ()
                command = [sys.executable, *module, str(_SCRIPTS / f"{script}.py")]
                took = processor_time_s(command, folder=folder, added={})
                if at:  # the first round compiles what is new
                    found[name].append(took)
    return found


def _start_rows(found: Mapping[str, Sequence[float]]) -> list[Row]:
    return [
        Row(
            what=f"{ours}, an empty script",
            ours=_middle(found[ours]),
            peer=f"{peer} {_middle(found[peer])}",
            figure=_ratio(found[peer], found[ours]),
        )
        for ours, peer in _PAIRS
        if peer in found
    ]


def _cost_rows(kind: str, found: Mapping[str, Sequence[float]]) -> list[Row]:
    """A script's time under each profiler, as a multiple of its time without one."""
    table = []
    for ours, peer in _PAIRS:
        if peer not in found:
            continue
        plain = f"{peer} {_middle(found[_PLAIN])}"
        table.append(
            Row(
                what=f"{ours}, {kind}",
                ours=f"{_ratio(found[ours], found[_PLAIN]):.3g} x plain",
                peer=plain if peer == _PLAIN else f"{peer} {_ratio(found[peer], found[_PLAIN]):.3g} x plain",
                figure=_ratio(found[peer], found[ours]),
            )
        )
    return table


def _middle(seconds: Sequence[float]) -> str:
    return nanoseconds(statistics.median(seconds) * 1e9)


def _ratio(ones: Sequence[float], others: Sequence[float]) -> float:
    return statistics.median(one / other for one, other in zip(ones, others, strict=True))
