"""A page's history as values, so that the report needs no store."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_opprof.units import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    """A metric in one run."""

    title: str  # the run's date and commit
    value: float | None  # of a step, in the metric's unit; None if unknown
    is_change: bool = False  # whether the trend changes here
    because: str = ""  # what changed in the environment since the run before, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricTrend:
    """A metric of a test over the runs of a history, oldest first."""

    label: str
    unit: Unit
    points: tuple[TrendPoint, ...]  # one per run
    note: str = ""  # why expected change points are missing; empty otherwise
