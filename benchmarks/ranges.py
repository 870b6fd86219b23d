"""Compares the cost of entering and leaving a named range with torch's, viztracer's and nvtx's."""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, Self

from benchmarks.child import measured
from benchmarks.table import Row
from benchmarks.workloads import cpu_time_ns, quieten

# Our and torch's `_RecordFunctionFast`, with only a name, and with a kernel's inputs and values.
_FAST: Final = ("fast", "torch fast")
_FAST_GIVEN: Final = ("fast, given", "torch fast, given")
_ROUNDS: Final = 2_000
_REPEATS: Final = 100
_SIDES: Final = ("ours", "off", "empty", "torch", "viztracer", "nvtx", *_FAST, *_FAST_GIVEN)


def rows(*, quick: bool) -> list[Row]:
    """Nanoseconds per ``with``, without the loop: the least over some processes; the sides take turns."""
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
            at_least=bound,
        )
        for side, name, bound in (
            ("torch", "torch.profiler", 40),
            ("viztracer", "viztracer", 1),
            ("nvtx", "nvtx, nothing listening", 1),
        )
    ]
    table += [
        Row(
            what=what,
            ours=f"{costs[ours]:.0f} ns",
            peer=f"torch's own {costs[peer]:.0f} ns",
            figure=costs[peer] / costs[ours],
            at_least=1,
        )
        for what, (ours, peer) in (
            ("_RecordFunctionFast, recording", _FAST),
            ("_RecordFunctionFast with inputs and values, recording shapes", _FAST_GIVEN),
        )
    ]
    table.append(
        Row(
            what="record_function, not recording",
            ours=f"{costs['off']:.0f} ns",
            peer=f"empty Python class {costs['empty']:.0f} ns",
            figure=costs["off"] / costs["empty"],
            at_most=1,
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


def _loop(make: Callable[..., Any]) -> Callable[[int], None]:
    def loop(n: int) -> None:
        for _ in range(n):
            with make("x"):
                pass

    return loop


@contextlib.contextmanager
def _started(tracer: Any) -> Iterator[None]:
    """Trace without writing the file that viztracer's own context manager writes."""
    tracer.start()
    yield
    tracer.stop()
    tracer.clear()


def _launch_loop(make: Callable[..., Any]) -> Callable[[int], None]:
    """Pass the inputs and values of a kernel of two tensors and a number, as torch.compile's code does."""
    import torch  # noqa: PLC0415  # the other sides run without it

    tensor = torch.ones(2, 3)
    inputs = [tensor, tensor, 6]
    values = {"grid": "(1,1,1)", "stream": 0, "num_warps": 4, "kernel_backend": "triton"}

    def loop(n: int) -> None:
        for _ in range(n):
            with make("x", inputs, values):
                pass

    return loop


def _fast_side(name: str) -> tuple[Callable[[int], None], Callable[[], Any]]:
    if name.startswith("torch"):
        import torch.profiler  # noqa: PLC0415

        module, make = torch.profiler, torch._C._profiler._RecordFunctionFast  # noqa: SLF001  # its only name
    else:
        import pytest_opprof as module  # noqa: PLC0415

        make = module._RecordFunctionFast  # noqa: SLF001
    is_given = name in _FAST_GIVEN
    loop = _launch_loop(make) if is_given else _loop(make)
    return loop, functools.partial(module.profile, record_shapes=is_given)


def _side(name: str) -> tuple[Callable[[int], None], Callable[[], contextlib.AbstractContextManager[Any]]]:
    """The loop, and the context manager to run it in."""
    match name:
        case "ours" | "off":
            from pytest_opprof import profile, record_function  # noqa: PLC0415  # one side in a process

            return _loop(record_function), profile if name == "ours" else contextlib.nullcontext
        case "torch":
            import torch.profiler  # noqa: PLC0415

            return _loop(torch.profiler.record_function), torch.profiler.profile
        case "fast" | "fast, given" | "torch fast" | "torch fast, given":
            return _fast_side(name)
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
    rounds = _ROUNDS // 10 if name.startswith("torch") else _ROUNDS
    quieten()
    for _ in range(_REPEATS):
        with around():
            loop(10)
            best = min(best, cpu_time_ns(loop, rounds))
        bare = min(bare, cpu_time_ns(_bare_loop, rounds))
    return (best - bare) / rounds


if __name__ == "__main__":
    print(json.dumps(_cost(sys.argv[1])))
