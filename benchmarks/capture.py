"""What recording an op costs: against an empty observer, and against torch.profiler."""

from __future__ import annotations

import contextlib
import ctypes
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.child import measured
from benchmarks.table import Bound, Row
from benchmarks.workloads import elapsed_ns, torch_workloads


def rows(*, quick: bool) -> list[Row]:
    """Nanoseconds an op, each side's minimum of many interleaved rounds."""
    found = measured("capture", "8" if quick else "40")
    table = []
    for name, cost in found.items():
        table.append(
            Row(
                what=f"an op recorded: {name}",
                ours=f"{cost['ours']:.0f} ns",
                peer=f"empty observer {cost['empty']:.0f} ns",
                figure=cost["ours"] - cost["empty"],
                bound=40,
                direction=Bound.AT_MOST,
                unit="ns",
            )
        )
        table.append(
            Row(
                what=f"the same, share of torch.profiler's: {name}",
                ours=f"{cost['ours']:.0f} ns",
                peer=f"torch.profiler {cost['torch']:.0f} ns",
                figure=cost["ours"] / cost["torch"],
                bound=0.5 if name == "encoder, forward" else None,
                direction=Bound.AT_MOST,
            )
        )
    return table


def _empty_observer() -> ctypes.CDLL:
    import torch  # noqa: PLC0415  # in the child only

    from pytest_opprof.capture.observer_build import compile_command, compiler  # noqa: PLC0415

    program = compiler()
    assert program is not None, "these rows need a C++ compiler"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "empty.so"
        source = Path(__file__).with_name("empty_observer.cpp")
        subprocess.run(compile_command(torch, program, source, out), check=True)
        return ctypes.CDLL(str(out))


@contextlib.contextmanager
def _nothing() -> Iterator[None]:
    yield


def _sides() -> dict[str, Callable[[], contextlib.AbstractContextManager[Any]]]:
    from torch.profiler import ProfilerActivity  # noqa: PLC0415  # in the child only
    from torch.profiler import profile as torch_profile  # noqa: PLC0415

    from pytest_opprof.capture.collector import Collector  # noqa: PLC0415

    library, collector = _empty_observer(), Collector.instance()
    collector.open()

    @contextlib.contextmanager
    def empty() -> Iterator[None]:
        library.empty_enable()
        yield
        library.empty_disable()

    @contextlib.contextmanager
    def ours() -> Iterator[None]:
        collector.start()
        yield
        collector.stop()

    return {
        "off": _nothing,
        "empty": empty,
        "ours": ours,
        "torch": lambda: torch_profile(activities=[ProfilerActivity.CPU]),
    }


def _costs(repeats: int) -> dict[str, dict[str, float]]:
    from pytest_opprof.capture.collector import Collector  # noqa: PLC0415

    sides, costs = _sides(), {}
    for workload in torch_workloads():
        workload.loop(workload.rounds)
        Collector.instance().start()
        workload.loop(1)
        ops = len(Collector.instance().stop())
        best = dict.fromkeys(sides, float("inf"))
        for repeat in range(repeats):
            for name, side in sides.items():
                if name == "torch" and repeat % 4:
                    continue  # its sessions take seconds, and its cost is the largest: fewer rounds do
                with side():
                    best[name] = min(best[name], elapsed_ns(workload.loop, workload.rounds))
        costs[workload.name] = {
            name: (best[name] - best["off"]) / (ops * workload.rounds) for name in sides if name != "off"
        }
    return costs


if __name__ == "__main__":
    print(json.dumps(_costs(int(sys.argv[1]))))
