"""Compares the cost of recording Python and C calls with that in cProfile, viztracer and torch."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Final

from benchmarks.child import measured
from benchmarks.table import Row
from benchmarks.workloads import cpu_time_ns, quieten

_ROUNDS: Final = 2_000
_REPEATS: Final = 100
_SIDES: Final = ("ours", "cProfile", "viztracer", "torch")
_KINDS: Final = ("Python", "C")


def rows(*, quick: bool) -> list[Row]:
    """Nanoseconds that recording adds to a call: the least over some processes; the sides take turns."""
    costs = {(side, kind): float("inf") for side in _SIDES for kind in _KINDS}
    for _ in range(1 if quick else 3):
        for side in _SIDES:
            for kind, cost in zip(_KINDS, measured("python_calls", side), strict=True):
                costs[side, kind] = min(costs[side, kind], cost)
    table = []
    for kind in _KINDS:
        fastest = min(_SIDES[1:], key=lambda side: costs[side, kind])
        table += [
            Row(
                what=f"{kind} call, recorded",
                ours=f"+ {costs['ours', kind]:.0f} ns",
                peer=f"{side} + {costs[side, kind]:.0f} ns",
                figure=costs[side, kind] / costs["ours", kind],
                at_least=1 if side == fastest else None,
            )
            for side in _SIDES[1:]
        ]
    return table


def _python_function(value: int) -> int:
    return value


def _python_loop(n: int) -> None:
    for i in range(n):
        _python_function(i)


def _c_loop(n: int) -> None:
    for _ in range(n):
        len(())


def _tracer(name: str) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    """Functions that start and stop a recording; a peer's post-processing is not counted."""
    match name:
        case "ours":
            from pytest_opprof import profile  # noqa: PLC0415  # one side in a process

            return lambda: _started(profile(with_stack=True)), lambda tracer: tracer.stop()
        case "cProfile":
            import cProfile  # noqa: PLC0415

            return lambda: _enabled(cProfile.Profile()), lambda tracer: tracer.disable()
        case "viztracer":
            from viztracer import VizTracer  # noqa: PLC0415

            return lambda: _started(VizTracer(verbose=0)), _stop_viztracer
        case _:
            import torch.profiler  # noqa: PLC0415

            return lambda: _started(torch.profiler.profile(with_stack=True)), lambda tracer: tracer.stop()


def _started(tracer: Any) -> Any:
    tracer.start()
    return tracer


def _enabled(tracer: Any) -> Any:
    tracer.enable()
    return tracer


def _stop_viztracer(tracer: Any) -> None:
    tracer.stop()
    tracer.clear()


def _costs(name: str) -> list[float]:
    start, stop = _tracer(name)
    loops = (_python_loop, _c_loop)
    best, bare = [float("inf")] * 2, [float("inf")] * 2
    rounds = _ROUNDS // 2 if name == "torch" else _ROUNDS
    quieten()
    for _ in range(_REPEATS if name != "torch" else _REPEATS // 4):
        tracer = start()
        for i, loop in enumerate(loops):
            loop(10)
            best[i] = min(best[i], cpu_time_ns(loop, rounds))
        stop(tracer)
        for i, loop in enumerate(loops):
            bare[i] = min(bare[i], cpu_time_ns(loop, rounds))
    return [(traced - plain) / rounds for traced, plain in zip(best, bare, strict=True)]


if __name__ == "__main__":
    print(json.dumps(_costs(sys.argv[1])))
