"""A session's output for other programs: its comparison in any format, and JUnit properties."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_opprof.capture.folders import start_folder
from pytest_opprof.compare.document import comparison_to_bytes, write_comparison
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
    """Raise `UsageError` for unknown formats, before any test runs."""
    for report in wanted:
        if report.kind != _DOCUMENT:
            renderer(report.kind, where="--opprof-report", besides=(_DOCUMENT,))


def write_report(wanted: WantedReport, comparison: Comparison, *, root: Path) -> str | None:
    """Write one report of a session, whose root folder is `root`; gives the text to print, if there is one.

    If it cannot be written, it raises `OpprofError`, and an existing file is unchanged.
    """
    if wanted.kind != _DOCUMENT:
        render = renderer(
            wanted.kind,
            where="--opprof-report",
            besides=(_DOCUMENT,),
            folders=lambda: (start_folder(), root),
        )
        text = render(comparison)
    elif wanted.path != PRINTED:
        write_comparison(wanted.path, comparison)  # it packs a .gz
        return None
    else:
        text = comparison_to_bytes(comparison, where="--opprof-report").decode("ascii")
    if wanted.path == PRINTED:
        return text
    write_bytes(wanted.path, text.encode("utf-8"))
    return None


def note_properties(item: pytest.Item, found: TestComparison) -> None:
    """Add a test's verdict and exact totals to its properties, which JUnit files and plugins show.

    After a rerun they are those of the last run.
    """
    others = [(name, value) for name, value in item.user_properties if not name.startswith(PREFIX)]
    item.user_properties[:] = [*others, *properties_of(found, verdict=found.verdict)]
