"""Print lines, in colour on a terminal."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable

from pytest_opprof.report.text import Line, Style

_CODES = {Style.BOLD: "1", Style.DIM: "2", Style.GOOD: "32", Style.WARN: "33", Style.BAD: "31"}
_WIDTH = 100


def print_lines(lines: Iterable[Line | str]) -> None:
    """Print the lines of a report."""
    is_coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for line in lines:
        if isinstance(line, str):
            line = Line(line)  # noqa: PLW2901 - the same line, of which nothing is known but its text
        code = _CODES.get(line.style) if is_coloured else None
        print(f"\x1b[{code}m{line.text}\x1b[0m" if code else line.text)


def width() -> int:
    """The terminal's width in characters."""
    return shutil.get_terminal_size((_WIDTH, 24)).columns
