"""What was found of a test, as properties of its report: JUnit files and other plugins show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_opprof.report.junit import PREFIX, properties_of

if TYPE_CHECKING:
    import pytest

    from pytest_opprof.compare.comparison import TestComparison


def note_properties(item: pytest.Item, found: TestComparison) -> None:
    """Put a test's verdict and its exact totals among its properties.

    A test that runs again has those of its last run.
    """
    others = [(name, value) for name, value in item.user_properties if not name.startswith(PREFIX)]
    item.user_properties[:] = [*others, *properties_of(found, verdict=found.verdict)]
