"""A page's history as values, so that the report needs no store."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_opprof.units import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    """A metric in one run.

    Attributes:
        title: The run's date and commit.
        value: Of a step, in the metric's unit; None if unknown.
        is_change: Whether the trend changes here.
        because: What changed in the environment since the run before, in words.
    """

    title: str
    value: float | None
    is_change: bool = False
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricTrend:
    """A metric of a test over the runs of a history, oldest first.

    Attributes:
        points: One per run.
        note: Why expected change points are missing; empty otherwise.
    """

    label: str
    unit: Unit
    points: tuple[TrendPoint, ...]
    note: str = ""
