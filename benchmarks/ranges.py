"""A named range, entered and left: ours against torch's, viztracer's and nvtx's."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, Self

from benchmarks.child import measured
from benchmarks.table import Bound, Row
from benchmarks.workloads import cpu_time_ns, quieten

_ROUNDS: Final = 2_000
_REPEATS: Final = 100
_SIDES: Final = ("ours", "off", "empty", "torch", "viztracer", "nvtx")


def rows(*, quick: bool) -> list[Row]:
    """Nanoseconds of one ``with``, less those of the loop: the least of some processes, taken in turn."""
    costs = dict.fromkeys(_SIDES, float("inf"))
    for _ in range(1 if quick else 3):
        for side in _SIDES:
            costs[side] = min(costs[side], measured("ranges", side))
    table = [
        Row(
            what="record_function, recording",
            ours=f"{costs['ours']:.0f} ns",
            peer=f"{name} {costs[side]:.0f} ns",
            figure=costs[side] / costs["ours"],
            bound=bound,
        )
        for side, name, bound in (
            ("torch", "torch.profiler", 40),
            ("viztracer", "viztracer", 1),
            ("nvtx", "nvtx, nothing listening", 1),
        )
    ]
    table.append(
        Row(
            what="record_function, not recording",
            ours=f"{costs['off']:.0f} ns",
            peer=f"empty Python class {costs['empty']:.0f} ns",
            figure=costs["off"] / costs["empty"],
            bound=1,
            direction=Bound.AT_MOST,
        )
    )
    return table


class _Empty:
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def _empty_loop(n: int) -> None:
    for _ in range(n):
        with _Empty():
            pass


def _bare_loop(n: int) -> None:
    for _ in range(n):
        pass


def _loop(make: Callable[[str], Any]) -> Callable[[int], None]:
    def loop(n: int) -> None:
        for _ in range(n):
            with make("x"):
                pass

    return loop


@contextlib.contextmanager
def _started(tracer: Any) -> Iterator[None]:
    """Tracing, without the file that viztracer's own context leaves behind."""
    tracer.start()
    yield
    tracer.stop()
    tracer.clear()


def _side(name: str) -> tuple[Callable[[int], None], Callable[[], contextlib.AbstractContextManager[Any]]]:
    """The loop, and what is open around it."""
    match name:
        case "ours" | "off":
            from pytest_opprof import profile, record_function  # noqa: PLC0415  # one side in a process

            return _loop(record_function), profile if name == "ours" else contextlib.nullcontext
        case "torch":
            import torch.profiler  # noqa: PLC0415

            return _loop(torch.profiler.record_function), torch.profiler.profile
        case "viztracer":
            from viztracer import VizTracer  # noqa: PLC0415

            tracer = VizTracer(max_stack_depth=0, log_sparse=True, verbose=0)
            return _loop(tracer.log_event), lambda: _started(tracer)
        case "nvtx":
            import nvtx  # noqa: PLC0415

            return _loop(nvtx.annotate), contextlib.nullcontext
        case _:
            return _empty_loop, contextlib.nullcontext


def _cost(name: str) -> float:
    loop, around = _side(name)
    best = bare = float("inf")
    rounds = _ROUNDS // 10 if name == "torch" else _ROUNDS
    quieten()
    for _ in range(_REPEATS):
        with around():
            loop(10)
            best = min(best, cpu_time_ns(loop, rounds))
        bare = min(bare, cpu_time_ns(_bare_loop, rounds))
    return (best - bare) / rounds


if __name__ == "__main__":
    print(json.dumps(_cost(sys.argv[1])))
