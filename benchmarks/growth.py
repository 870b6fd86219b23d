"""Post-processing from ten thousand events to ten million: the time of one event stays the same."""

from __future__ import annotations

import json
import sys
import time

from benchmarks.child import measured
from benchmarks.table import Bound, Row

_SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
_MOST = 2.0


def rows(*, quick: bool) -> list[Row]:
    """Stop and key averages at each size; the bound is on the largest size against the second smallest.

    Ten thousand events take less than a millisecond, most of which belongs to no event: calibrating the
    clock, joining threads. That size is printed and bounds nothing.
    """
    sizes = _SIZES[:-1] if quick else _SIZES
    costs = {size: measured("growth", str(size)) for size in sizes}
    reference = costs[_SIZES[1]]
    return [
        Row(
            what=f"stop and key averages of {size:,} events",
            ours=f"{cost:.0f} ns an event",
            peer=f"{_SIZES[1]:,}: {reference:.0f} ns",
            figure=cost / reference,
            bound=_MOST if size > _SIZES[1] else None,
            direction=Bound.AT_MOST,
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
        start = time.perf_counter_ns()
        recording = collector.stop()
        recording.groups()
        best = min(best, time.perf_counter_ns() - start)
        assert len(recording) == size // 4 * 4
        assert not recording.stats.dropped
    return best / size


if __name__ == "__main__":
    print(json.dumps(_cost(int(sys.argv[1]))))
