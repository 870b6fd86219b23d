"""Writes the generated parts into the pages: `make reference`."""

from __future__ import annotations

from pathlib import Path

from opprof_docs.parts import filled

if __name__ == "__main__":
    docs = Path(__file__).parents[1]
    for path in (docs.parent / "README.md", *docs.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if (written := filled(text)) != text:
            path.write_text(written, encoding="utf-8")
