"""Post-processing from ten thousand to ten million events: the time per event stays the same."""

from __future__ import annotations

import json
import sys
import time
from typing import Final

from benchmarks.child import measured
from benchmarks.table import Row

_SIZES: Final = (10_000, 100_000, 1_000_000, 10_000_000)
_PROCESSES: Final = 3
_MOST: Final = 2.0
# By default the allocator reuses the memory of small results, and only large ones pay for fresh pages.
_FRESH_MEMORY: Final = {"MALLOC_MMAP_THRESHOLD_": str(128 << 10)}


def rows(*, quick: bool) -> list[Row]:
    """Times of stop, key averages and call tree; each size is bounded against the cheapest."""
    sizes = _SIZES[:-1] if quick else _SIZES
    costs = dict.fromkeys(sizes, float("inf"))
    for _ in range(1 if quick else _PROCESSES):
        for size in sizes:
            costs[size] = min(costs[size], measured("growth", str(size), added=_FRESH_MEMORY))
    least = min(costs, key=costs.__getitem__)
    return [
        Row(
            what=f"stop, key averages, call tree: {size:,} events",
            ours=f"{cost:.0f} ns an event",
            peer=f"{least:,} events {costs[least]:.0f} ns",
            figure=cost / costs[least],
            at_most=_MOST,
        )
        for size, cost in costs.items()
    ]


def _cost(size: int) -> float:
    from pytest_opprof.capture.collector import Collector  # noqa: PLC0415  # in the child only
    from pytest_opprof.capture.ranges import record_function  # noqa: PLC0415

    collector, best = Collector.instance(), float("inf")
    outer, inner = record_function("outer"), record_function("inner")
    for _ in range(3):
        collector.start()
        for _ in range(size // 4):
            with outer:
                with inner:
                    pass
                with inner, inner:
                    pass
        start = time.process_time_ns()
        recording = collector.stop()
        recording.groups()
        recording.call_tree()
        best = min(best, time.process_time_ns() - start)
        assert len(recording) == size // 4 * 4
        assert not recording.stats.dropped
    return best / size


if __name__ == "__main__":
    print(json.dumps(_cost(int(sys.argv[1]))))
