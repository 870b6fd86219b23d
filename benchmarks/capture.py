"""Compares the cost of recording an op with an empty observer's and with torch.profiler's."""

from __future__ import annotations

import contextlib
import ctypes
import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.child import measured
from benchmarks.table import Row
from benchmarks.workloads import (
    FORWARD_ONLY,
    Workload,
    cpu_time_ns,
    quieten,
    torch_workloads,
    undisturbed,
)

_FULL_PEERS = ("ours, full", "torch, full")  # with shapes and memory
_SITES = "ours, call sites"
_SLOW = ("torch", "torch, full")  # slow, and their cost is large: a quarter of the rounds suffices
_ROUNDS = 800
_PROCESSES = 3  # the addresses of its code and data shift a process's times by some nanoseconds


def rows(*, quick: bool) -> list[Row]:
    """Nanoseconds per op, from many short interleaved rounds in several processes."""
    found = [
        measured("capture", str(_ROUNDS // 4 if quick else _ROUNDS))
        for _ in range(1 if quick else _PROCESSES)
    ]
    return [row for workload in found[0] for row in _rows(workload, [process[workload] for process in found])]


def _rows(workload: str, costs: list[dict[str, float]]) -> list[Row]:
    ours, empty, noting = (_middle(costs, side) for side in ("ours", "empty", _SITES))
    # In a backward pass the empty observer alone costs half as much as torch.profiler.
    most = 0.5 if workload in FORWARD_ONLY else None
    return [
        Row(
            what=f"an op recorded: {workload}",
            ours=f"{ours:.0f} ns",
            peer=f"empty observer {empty:.0f} ns",
            figure=statistics.median(cost["ours"] - cost["empty"] for cost in costs),
            at_most=40,
            unit="ns more",
        ),
        _beside_torch(f"the same: {workload}", costs, "ours", "torch", at_most=most),
        _beside_torch(f"with shapes and memory: {workload}", costs, *_FULL_PEERS, at_most=0.65),
        Row(
            what=f"a call site noted: {workload}",
            ours=f"{noting:.0f} ns an op",
            peer=f"without {ours:.0f} ns",
            figure=statistics.median((cost[_SITES] - cost["ours"]) / cost["outermost"] for cost in costs),
            at_most=60,
            unit="ns more an outermost op",
        ),
        _beside_torch(f"with call sites: {workload}", costs, _SITES, "torch", at_most=0.65),
    ]


def _beside_torch(
    what: str, costs: list[dict[str, float]], ours: str, torch: str, *, at_most: float | None
) -> Row:
    return Row(
        what=what,
        ours=f"{_middle(costs, ours):.0f} ns",
        peer=f"torch.profiler {_middle(costs, torch):.0f} ns",
        figure=statistics.median(cost[ours] / cost[torch] for cost in costs),
        at_most=at_most,
    )


def _middle(costs: list[dict[str, float]], side: str) -> float:
    return statistics.median(cost[side] for cost in costs)


def _empty_observer() -> ctypes.CDLL:
    import torch  # noqa: PLC0415  # in the child only

    from pytest_opprof.capture.cxx import compiler  # noqa: PLC0415
    from pytest_opprof.capture.observer_build import build_of, compile_command  # noqa: PLC0415

    program = compiler()
    assert program is not None, "these rows need a C++ compiler"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "empty.so"
        source = Path(__file__).with_name("empty_observer.cpp")
        subprocess.run(compile_command(build_of(torch), program, source, out), check=True)
        return ctypes.CDLL(str(out))


def _sides() -> dict[str, Callable[[], contextlib.AbstractContextManager[Any]]]:
    from torch.profiler import ProfilerActivity  # noqa: PLC0415  # in the child only
    from torch.profiler import profile as torch_profile  # noqa: PLC0415

    from pytest_opprof.capture.call_sites import SITES  # noqa: PLC0415
    from pytest_opprof.capture.collector import Collector  # noqa: PLC0415
    from pytest_opprof.capture.sources import DEFAULT_SOURCES  # noqa: PLC0415

    library, collector = _empty_observer(), Collector.instance()

    @contextlib.contextmanager
    def off() -> Iterator[None]:
        with ours():  # opening and closing a window disturbs the caches, which is not an op's cost
            pass
        yield

    @contextlib.contextmanager
    def empty() -> Iterator[None]:
        with off():
            library.empty_enable()
            yield
            library.empty_disable()

    @contextlib.contextmanager
    def ours(*, full: bool = False) -> Iterator[None]:
        collector.start(record_shapes=full, profile_memory=full)
        yield
        collector.stop()

    @contextlib.contextmanager
    def noting_sites() -> Iterator[None]:
        collector.open(sources=DEFAULT_SOURCES | {SITES})
        with ours():
            yield
        collector.open(sources=DEFAULT_SOURCES)

    def theirs(*, full: bool = False) -> contextlib.AbstractContextManager[Any]:
        profile: contextlib.AbstractContextManager[Any] = torch_profile(
            activities=[ProfilerActivity.CPU], record_shapes=full, profile_memory=full
        )
        return profile

    return {
        "off": off,
        "empty": empty,
        "ours": ours,
        _SITES: noting_sites,
        "torch": theirs,
        "ours, full": lambda: ours(full=True),
        "torch, full": lambda: theirs(full=True),
    }


def _ops_a_round(workload: Workload) -> tuple[int, int]:
    """The number of all ops of a round, and of the outermost ones."""
    from pytest_opprof.capture.collector import Collector  # noqa: PLC0415

    workload.loop(workload.rounds)
    Collector.instance().start()
    workload.loop(1)
    recording = Collector.instance().stop()
    return len(recording), sum(parent < 0 for parent in recording.parent)


def _costs(rounds: int) -> dict[str, dict[str, float]]:
    sides, costs = _sides(), {}
    names = list(sides)
    with sides["torch"]():
        pass  # the first session's imports create a hundred thousand objects
    for workload in torch_workloads():
        ops_a_round, outermost = _ops_a_round(workload)
        ops = ops_a_round * workload.rounds
        quieten()
        samples = defaultdict(list)
        order = random.Random(0)  # noqa: S311  # no secret
        for i in range(rounds):
            order.shuffle(names)  # so that no side always follows the same one
            for name in names:
                if name in _SLOW and i % 4:
                    continue
                with sides[name]():
                    workload.loop(workload.rounds)  # warm the caches
                    samples[name].append(cpu_time_ns(workload.loop, workload.rounds) / ops)
        base = undisturbed(samples["off"])
        costs[workload.name] = {name: undisturbed(samples[name]) - base for name in names if name != "off"}
        costs[workload.name]["outermost"] = outermost / ops_a_round
    return costs


if __name__ == "__main__":
    print(json.dumps(_costs(int(sys.argv[1]))))
