"""What recording an op costs: against an empty observer, and against torch.profiler."""

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

_PEERS = ("ours", "empty", "torch")
_FULL_PEERS = ("ours, full", "torch, full")  # shapes and memory too
_SITES = "ours, call sites"
_SLOW = ("torch", "torch, full")  # sessions that take long, and cost most: fewer rounds do
_ROUNDS = 800
_PROCESSES = 3  # where a process has its code and data shifts its times by some nanoseconds


def rows(*, quick: bool) -> list[Row]:
    """Nanoseconds an op, of many short interleaved rounds in each of some processes."""
    found = [
        measured("capture", str(_ROUNDS // 4 if quick else _ROUNDS))
        for _ in range(1 if quick else _PROCESSES)
    ]
    table = []
    for workload in found[0]:
        costs = [process[workload] for process in found]
        ours, empty, torch = (statistics.median(cost[side] for cost in costs) for side in _PEERS)
        more = statistics.median(cost["ours"] - cost["empty"] for cost in costs)
        table.append(
            Row(
                what=f"an op recorded: {workload}",
                ours=f"{ours:.0f} ns",
                peer=f"empty observer {empty:.0f} ns",
                figure=more,
                at_most=40,
                unit="ns more",
            )
        )
        table.append(
            Row(
                what=f"the same: {workload}",
                ours=f"{ours:.0f} ns",
                peer=f"torch.profiler {torch:.0f} ns",
                figure=statistics.median(cost["ours"] / cost["torch"] for cost in costs),
                # In a backward pass the empty observer alone costs half of what torch.profiler does.
                at_most=0.5 if workload in FORWARD_ONLY else None,
            )
        )
        ours, torch = (statistics.median(cost[side] for cost in costs) for side in _FULL_PEERS)
        table.append(
            Row(
                what=f"with shapes and memory: {workload}",
                ours=f"{ours:.0f} ns",
                peer=f"torch.profiler {torch:.0f} ns",
                figure=statistics.median(cost[_FULL_PEERS[0]] / cost[_FULL_PEERS[1]] for cost in costs),
                at_most=0.65,
            )
        )
        table += _with_call_sites(workload, costs)
    return table


def _with_call_sites(workload: str, costs: list[dict[str, float]]) -> list[Row]:
    ours, noting, torch = (
        statistics.median(cost[side] for cost in costs) for side in ("ours", _SITES, "torch")
    )
    return [
        Row(
            what=f"a call site noted: {workload}",
            ours=f"{noting:.0f} ns an op",
            peer=f"without {ours:.0f} ns",
            figure=statistics.median((cost[_SITES] - cost["ours"]) / cost["outermost"] for cost in costs),
            at_most=60,
            unit="ns more an outermost op",
        ),
        Row(
            what=f"with call sites: {workload}",
            ours=f"{noting:.0f} ns",
            peer=f"torch.profiler {torch:.0f} ns",
            figure=statistics.median(cost[_SITES] / cost["torch"] for cost in costs),
            at_most=0.65,
        ),
    ]


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
        with ours():  # what opening and closing a window does to the caches is not an op's cost
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
    """All of them, and the outermost."""
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
        pass  # the first session imports a hundred thousand objects
    for workload in torch_workloads():
        ops_a_round, outermost = _ops_a_round(workload)
        ops = ops_a_round * workload.rounds
        quieten()
        samples = defaultdict(list)
        order = random.Random(0)  # noqa: S311  # no secret
        for i in range(rounds):
            order.shuffle(names)  # none always follows a certain other
            for name in names:
                if name in _SLOW and i % 4:
                    continue
                with sides[name]():
                    workload.loop(workload.rounds)  # until the caches are its own
                    samples[name].append(cpu_time_ns(workload.loop, workload.rounds) / ops)
        base = undisturbed(samples["off"])
        costs[workload.name] = {name: undisturbed(samples[name]) - base for name in names if name != "off"}
        costs[workload.name]["outermost"] = outermost / ops_a_round
    return costs


if __name__ == "__main__":
    print(json.dumps(_costs(int(sys.argv[1]))))
