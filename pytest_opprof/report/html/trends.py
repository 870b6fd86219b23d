"""What a page shows of a history: values, so that the report knows no store."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_opprof.units import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    """A metric in one run.

    Attributes:
        title: The run's date and commit.
        value: Of a step, in the metric's unit; None where the run cannot say.
        is_change: Whether the trend changes here.
        because: What of the environment is not as in the run before, in words.
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
        note: Why there are no change points although there could be; empty otherwise.
    """

    label: str
    unit: Unit
    points: tuple[TrendPoint, ...]
    note: str = ""
