"""A named range, entered and left: ours against torch's, viztracer's and nvtx's."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, Self

from benchmarks.child import measured
from benchmarks.table import Bound, Row
from benchmarks.workloads import elapsed_ns

_ROUNDS = 20_000


def rows(*, quick: bool) -> list[Row]:
    """Nanoseconds of one ``with``, less those of the loop."""
    repeats = "5" if quick else "25"
    ours, off, empty = (measured("ranges", side, repeats) for side in ("ours", "off", "empty"))
    table = [
        Row(
            what="record_function, recording",
            ours=f"{ours:.0f} ns",
            peer=f"{name} {cost:.0f} ns",
            figure=cost / ours,
            bound=bound,
        )
        for name, bound, cost in (
            ("torch.profiler", 40, measured("ranges", "torch", repeats)),
            ("viztracer", 1, measured("ranges", "viztracer", repeats)),
            ("nvtx", 1, measured("ranges", "nvtx", repeats)),
        )
    ]
    table.append(
        Row(
            what="record_function, not recording",
            ours=f"{off:.0f} ns",
            peer=f"empty Python class {empty:.0f} ns",
            figure=off / empty,
            bound=1,
            direction=Bound.AT_MOST,
        )
    )
    return table


class _Empty:
    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


@contextlib.contextmanager
def _started(tracer: Any) -> Iterator[None]:
    """Tracing, without the file that viztracer's own context leaves behind."""
    tracer.start()
    yield
    tracer.stop()
    tracer.clear()


def _loop(make: Callable[[str], Any]) -> Callable[[int], None]:
    def loop(n: int) -> None:
        for _ in range(n):
            with make("x"):
                pass

    return loop


def _bare(n: int) -> None:
    for _ in range(n):
        pass


def _side(name: str) -> tuple[Callable[[str], Any], Callable[[], contextlib.AbstractContextManager[Any]]]:
    """What makes a range, and what is open around the loop."""
    match name:
        case "ours" | "off":
            from pytest_opprof import profile, record_function  # noqa: PLC0415  # one side in a process

            return record_function, profile if name == "ours" else contextlib.nullcontext
        case "torch":
            import torch.profiler  # noqa: PLC0415

            return torch.profiler.record_function, torch.profiler.profile
        case "viztracer":
            from viztracer import VizTracer  # noqa: PLC0415

            tracer = VizTracer(max_stack_depth=0, log_sparse=True, verbose=0)
            return tracer.log_event, lambda: _started(tracer)
        case "nvtx":
            import nvtx  # noqa: PLC0415

            return nvtx.annotate, contextlib.nullcontext
        case _:
            return _Empty, contextlib.nullcontext


def _cost(name: str, repeats: int) -> float:
    make, around = _side(name)
    loop, best, bare = _loop(make), float("inf"), float("inf")
    rounds = _ROUNDS // 20 if name == "torch" else _ROUNDS
    for _ in range(repeats):
        with around():
            loop(10)
            best = min(best, elapsed_ns(loop, rounds))
        bare = min(bare, elapsed_ns(_bare, rounds))
    return (best - bare) / rounds


if __name__ == "__main__":
    print(json.dumps(_cost(sys.argv[1], int(sys.argv[2]))))
