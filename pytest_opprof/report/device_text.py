"""A step's device work in a line."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_opprof.metrics import TOTALS
from pytest_opprof.metrics.device import (
    COPIES_COUNT,
    DIRECTIONS,
    KERNELS_COUNT,
    LAUNCHES_COUNT,
    MEMSETS_COUNT,
    TOTAL_BUSY_TIME,
    TOTAL_IDLE_FRACTION,
    TOTAL_OF_COUNT,
    TOTAL_QUEUE_DEPTH,
)
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import range_text

_COUNTS = (KERNELS_COUNT, LAUNCHES_COUNT, MEMSETS_COUNT, TOTAL_OF_COUNT["syncs"])
_TIMES = (TOTAL_BUSY_TIME, TOTAL_IDLE_FRACTION, TOTAL_QUEUE_DEPTH)


def device_text(test: TestResult) -> str:
    """``kernels 12, launches 12, HtoD 1 (4.0 KiB), CUDA busy 1.2 ms``; empty without device work."""
    if not any(has_some(test, metric.name) for metric in TOTAL_OF_COUNT.values()):
        return ""
    parts = [_part(test, metric.name) for metric in _COUNTS if has_some(test, metric.name)]
    parts += _copies(test)
    parts += [_part(test, metric.name) for metric in _TIMES if has_some(test, metric.name)]
    return ", ".join(parts)


def has_some(test: TestResult, total: str) -> bool:
    """Whether a total was measured, and is not zero in every step."""
    return total in test.totals and test.totals[total].high > 0


def _value(test: TestResult, total: str) -> str:
    return range_text(test.totals[total], unit=TOTALS[total].unit)


def _part(test: TestResult, total: str) -> str:
    return f"{TOTALS[total].label} {_value(test, total)}"


def _copies(test: TestResult) -> Iterator[str]:
    """Copies by direction; all as one if directions are unknown."""
    by_direction = {label: f"copies_{key}" for key, label in DIRECTIONS.items()}
    if f"{by_direction['HtoD']}.count" not in test.totals:
        by_direction = {COPIES_COUNT.label: "copies"}
    for label, name in by_direction.items():
        if has_some(test, f"{name}.count"):
            size = f" ({_value(test, f'{name}.bytes')})" if f"{name}.bytes" in test.totals else ""
            yield f"{label} {_value(test, f'{name}.count')}{size}"
