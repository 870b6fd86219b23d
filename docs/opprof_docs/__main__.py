"""Writes the generated parts into the docs and the README, for `make reference`."""

from __future__ import annotations

from pathlib import Path

from opprof_docs.contracts import SCHEMAS, with_metrics
from opprof_docs.parts import filled

if __name__ == "__main__":
    run_schema = SCHEMAS / "run.schema.json"
    run_schema.write_text(with_metrics(run_schema.read_text(encoding="utf-8")), encoding="utf-8")
    docs = Path(__file__).parents[1]
    for path in (docs.parent / "README.md", *docs.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if (written := filled(text)) != text:
            path.write_text(written, encoding="utf-8")
