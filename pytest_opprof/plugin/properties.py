"""What was found of a test, as properties of its report: JUnit files and other plugins show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_opprof.metrics import TOTALS, Family
from pytest_opprof.results.samples import range_text

if TYPE_CHECKING:
    import pytest

    from pytest_opprof.compare.comparison import TestComparison

_PREFIX: Final = "opprof."


def note_properties(item: pytest.Item, found: TestComparison) -> None:
    """Put a test's verdict and its exact totals among its properties.

    A test that runs again has those of its last run. Times are left out: they tell nothing by themselves.
    """
    others = [(name, value) for name, value in item.user_properties if not name.startswith(_PREFIX)]
    verdict = [] if found.verdict is None else [(f"{_PREFIX}verdict", found.verdict.label)]
    totals = found.head.totals if found.head is not None else {}
    counts = [
        (_PREFIX + name, range_text(totals[name], unit=metric.unit))
        for name, metric in TOTALS.items()
        if name in totals and metric.family is not Family.TIME
    ]
    item.user_properties[:] = [*others, *verdict, *counts]
