"""The cost of attributing a million kernels to their ranges, with the tests' fake libcupti.

Its records have CUPTI's own layout, so this measures the same code as on a machine with a GPU: from completed
buffers to kernels below their ranges. The fake library's own work runs on a thread of its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks.child import least
from benchmarks.table import Row

_KERNELS: Final = 1_000_000
_KERNELS_A_RANGE: Final = 10
_PROCESSES: Final = 3
_MOST_NS: Final = 300
_REPOSITORY: Final = Path(__file__).parents[1]
_TESTS: Final = _REPOSITORY / "tests"


def rows(*, quick: bool) -> list[Row]:
    """The cost of a kernel when recording stops, beside that of a range without kernels."""
    size = _KERNELS // 10 if quick else _KERNELS
    rounds, added = 1 if quick else _PROCESSES, _with_fake_cuda()
    plain, whole = least("cuda", ("ranges", "kernels"), str(size), rounds=rounds, added=added)
    tree_ns = plain["stop_ns"] / size
    kernel_ns = (whole["stop_ns"] - plain["stop_ns"] / _KERNELS_A_RANGE) / size
    read_ns = whole["meanwhile_ns"] / size
    return [
        Row(
            what=f"a kernel given to its op, when recording stops: {size:,} kernels",
            ours=f"{kernel_ns:.0f} ns",
            peer=f"{_KERNELS_A_RANGE} kernels an op",
            figure=kernel_ns,
            at_most=_MOST_NS,
            unit="ns",
        ),
        Row(
            what=f"the same, beside an op in its tree: {size:,} ops",
            ours=f"{kernel_ns:.0f} ns",
            peer=f"op tree {tree_ns:.0f} ns",
            figure=kernel_ns / tree_ns,
        ),
        Row(
            what="a kernel and its call read from CUPTI's buffers, while recording",
            ours=f"{read_ns:.0f} ns",
            peer="on a thread of its own",
            figure=read_ns,
            unit="ns",
        ),
    ]


def _with_fake_cuda() -> dict[str, str]:
    """Build the fake libraries; give the variables with which a child can import and load them."""
    sys.path.insert(0, str(_TESTS))
    from support.cuda.fake_cuda import LIBRARIES  # noqa: PLC0415  # only this bench needs the tests' code
    from support.programs.native_programs import build  # noqa: PLC0415

    folder = build(_REPOSITORY, "fake_cupti") / "fake_cupti"
    if not (folder / "cupti-12").is_dir():
        raise SystemExit("this bench needs the headers of CUPTI 12.9: pip install -e '.[dev]'")
    path = os.pathsep.join([str(_TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {LIBRARIES: str(folder), "PYTHONPATH": path}


def _costs(side: str, size: int) -> dict[str, float]:
    """Processor time: `stop_ns` of the thread that stops, `meanwhile_ns` of the collector's own threads."""
    from pytest_opprof.capture.collector import Collector  # noqa: PLC0415  # in the child only

    cuda, loop = _program(side)
    collector = Collector.instance()
    collector.open(sources=frozenset({"ranges", "cuda"}))
    collector.start()  # the first window starts the fake device's thread, which then stays
    cuda.launch()
    collector.stop()
    best = {"stop_ns": float("inf"), "meanwhile_ns": float("inf")}
    for _ in range(3):
        whole, own, device = _clocks()
        collector.start()
        loop(size)
        cuda.script("flush 0")
        _settle()
        before = time.thread_time_ns()
        recording = collector.stop()
        best["stop_ns"] = min(best["stop_ns"], time.thread_time_ns() - before)
        meanwhile = [now - then for now, then in zip(_clocks(), (whole, own, device), strict=True)]
        best["meanwhile_ns"] = min(best["meanwhile_ns"], meanwhile[0] - meanwhile[1] - meanwhile[2])
        kernels = size if side == "kernels" else 0
        stats = recording.stats
        assert stats.device_events == kernels, stats
        assert stats.dropped + stats.device_dropped == 0, stats
        del recording
    return best


def _program(side: str) -> tuple[Any, Callable[[int], None]]:
    """The fake library, and a loop over ranges or over launches in ranges."""
    from support.cuda import fake_cuda  # noqa: PLC0415  # in the child only

    from pytest_opprof.capture.ranges import record_function  # noqa: PLC0415

    cuda, scope = fake_cuda.load(), record_function("op")
    activity = ctypes.byref(fake_cuda.activity("launch", name="kernel"))
    launch = cuda.cupti.fake_run

    def ranges(size: int) -> None:
        for _ in range(size):
            with scope:
                pass

    def kernels(size: int) -> None:
        for _ in range(size // _KERNELS_A_RANGE):
            with scope:
                for _ in range(_KERNELS_A_RANGE):
                    launch(activity)

    return cuda, {"ranges": ranges, "kernels": kernels}[side]


def _settle() -> None:
    """Wait until the other threads have nothing left to do."""
    before = -1
    while (taken := _clocks()[2]) != before:
        before = taken
        time.sleep(0.05)


def _clocks() -> tuple[int, int, int]:
    """Processor time of the process, of this thread, and of the other threads that are still alive."""
    me = str(os.getpid())
    tasks = [task for task in Path("/proc/self/task").iterdir() if task.name != me]
    others = sum(int((task / "schedstat").read_text(encoding="ascii").split()[0]) for task in tasks)
    return time.process_time_ns(), time.thread_time_ns(), others


if __name__ == "__main__":
    print(json.dumps(_costs(sys.argv[1], int(sys.argv[2]))))
