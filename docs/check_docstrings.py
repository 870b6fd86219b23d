"""``python docs/check_docstrings.py``: whether all docstrings speak one dialect, as `make lint` asks.

Ruff checks the sections of Google's style. This checks that each entry of a section begins with a capital.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKED = ("pytest_opprof", "native", "docs", "benchmarks", "examples", "tests")
_HEAD = re.compile(r"( *)(Args|Attributes|Returns|Yields|Raises):")
_SMALL = re.compile(r" *(?:\*{0,2}[\w.]+: )?+[a-z]")
# Ours and torch's names for things stand as they are written.
_NAME = re.compile(r" *(?:\*{0,2}[\w.]+: )?+\w*[_.(]\w")


def faults(path: Path) -> Iterator[str]:
    """A sentence for each entry that begins with a small letter."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            text = node.body[0]
            for number in _small(lines, text.lineno, text.end_lineno or text.lineno):
                yield f"{path}:{number}: this entry of a docstring begins with a small letter"


def _small(lines: list[str], first: int, last: int) -> Iterator[int]:
    """The lines of a docstring at which an entry begins with a small letter."""
    indent, head_is_text = None, False
    for number in range(first, last + 1):
        line = lines[number - 1]
        if head := _HEAD.fullmatch(line):
            indent, head_is_text = f"{head[1]}    ", head[2] in {"Returns", "Yields"}
        elif line.strip() and indent and not line.startswith(indent):
            indent = None
        elif indent and not line.startswith(f"{indent} "):
            if _SMALL.match(line) and not _NAME.match(line):
                yield number
            if head_is_text:
                indent = None


if __name__ == "__main__":
    root = Path(__file__).parents[1]
    files = [file for folder in CHECKED for file in sorted((root / folder).rglob("*.py"))]
    if problems := [problem for file in files for problem in faults(file)]:
        sys.exit("\n".join(problems))
