"""What a session leaves for others: its comparison, in any format that there is, and what reports tell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_opprof.compare.document import write_comparison
from pytest_opprof.report.formats import renderer
from pytest_opprof.report.junit import PREFIX, properties_of
from pytest_opprof.results.files import write_bytes

if TYPE_CHECKING:
    import pytest

    from pytest_opprof.compare.comparison import Comparison, TestComparison
    from pytest_opprof.plugin.options import WantedReport

PRINTED: Final = Path("-")
_DOCUMENT: Final = "json"


def check_reports(wanted: Sequence[WantedReport]) -> None:
    """Refuse what cannot be written, before any test runs.

    Raises:
        UsageError: There is no such format.
    """
    for report in wanted:
        if report.kind != _DOCUMENT:
            renderer(report.kind, where="--opprof-report", besides=(_DOCUMENT,))


def write_report(wanted: WantedReport, comparison: Comparison) -> str | None:
    """Write one report.

    Returns:
        What is to be printed; None where there is a file now.

    Raises:
        OpprofError: It cannot be written; an existing file is unchanged.
    """
    if wanted.kind == _DOCUMENT:
        write_comparison(wanted.path, comparison)
        return None
    text = renderer(wanted.kind, where="--opprof-report", besides=(_DOCUMENT,))(comparison)
    if wanted.path == PRINTED:
        return text
    write_bytes(wanted.path, text.encode("utf-8"))
    return None


def note_properties(item: pytest.Item, found: TestComparison) -> None:
    """Put a test's verdict and its exact totals among its properties, which JUnit files and plugins show.

    A test that runs again has those of its last run.
    """
    others = [(name, value) for name, value in item.user_properties if not name.startswith(PREFIX)]
    item.user_properties[:] = [*others, *properties_of(found, verdict=found.verdict)]
