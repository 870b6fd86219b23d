"""docs/detectors.md: each detector, what it reports, and the test that fails without it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from mutants.detector import Detector, Layer

PAGE: Final = "docs/detectors.md"
_INTRODUCTION: Final = """\
# Detecting data loss

If something is dropped, cut off, unmatched or not measured, a place in the code notices, and others pass it on to the file, the
verdict and the table. Each of these places is a detector.

`make mutants` silences one detector after the other: it copies the sources to `build/mutants`, edits the copy, builds what the edit
changes, and runs the detector's test, which must fail. First all tests must pass on the unchanged sources, and the text that an edit
replaces must be there exactly once. An interrupted run resumes. To try one detector:
`make mutants MUTANTS="--only 'events past the budget'"`. The exit code is 1 if a test does not notice.

This page is written by `make mutants MUTANTS=--write`, from `tests/mutants`, and a test holds it to that.
"""


def page(detectors: Iterable[Detector]) -> str:
    """The page's text."""
    return "\n".join([_INTRODUCTION, *_sections(list(detectors))])


def _sections(detectors: list[Detector]) -> Iterator[str]:
    for layer in Layer:
        here = [detector for detector in detectors if detector.layer is layer]
        yield f"## {layer.value}\n"
        yield "| detector | what it tells | the test that fails without it |"
        yield "|---|---|---|"
        for one in here:
            yield f"| {one.name} | {one.tells} | `{one.test}` |"
        yield ""
