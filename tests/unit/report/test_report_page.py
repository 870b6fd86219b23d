"""The samples in docs/reports.md match each format's output."""

import re
from pathlib import Path

import pytest
from support.documents.compared import cloning

from pytest_opprof.report.formats import FORMATS

# by the start of a block: the format, and the code's lines if stacks were recorded
SHOWN = {
    "### opprof": ("markdown", {"forward, src/model.py:41": 6}),
    "<testcase": ("junit", None),
    "::error": ("annotations", {"forward, src/model.py:41": 6}),
    "# HELP": ("openmetrics", None),
    "{": ("badge", None),
}


@pytest.mark.parametrize("begin", SHOWN)
def test_page_shows_the_written_formats(begin: str, repository: Path) -> None:
    page = (repository / "docs" / "reports.md").read_text(encoding="utf-8")
    (block,) = (
        text for text in re.findall(r"```text\n(.*?)\n```", page, re.DOTALL) if text.startswith(begin)
    )
    name, places = SHOWN[begin]
    written = [line.strip() for line in FORMATS[name](cloning(places=places)).splitlines()]
    shown = [line.strip() for line in block.splitlines()]
    start = next(at for at, line in enumerate(written) if line.startswith(shown[0]))
    found = written[start : start + len(shown)]
    # the page may cut its last line
    assert [line[: len(short)] for line, short in zip(found, shown, strict=True)] == shown
