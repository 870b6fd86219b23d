"""docs/detectors.md: each detector, what is known because of it, and the test that fails without it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from mutants.detector import Detector, Layer

PAGE: Final = "docs/detectors.md"
_INTRODUCTION: Final = """\
# What tells of a loss

Whenever something was dropped, cut off, not matched or not measured, a place in the code notices it, and others pass it on:
into the document, the verdict, the table. Each of these is a detector here.

`make mutants` takes them away, one after the other: it copies the sources to `build/mutants`, edits the copy so that the
detector is silent, builds what that changes, and runs the test beside it, which has to fail. The tests must hold of the
sources as they are first, and an edit whose text is not there exactly once is an error. Interrupted, it goes on where it
was; `make mutants MUTANTS="--only 'events past the budget'"` tries one. It ends with 1 where a test does not notice.

This page is written by `make mutants MUTANTS=--write`, from `tests/mutants`, and a test holds it to that.
"""


def page(detectors: Iterable[Detector]) -> str:
    """The page's text."""
    return "\n".join([_INTRODUCTION, *_sections(list(detectors))])


def _sections(detectors: list[Detector]) -> Iterator[str]:
    for layer in Layer:
        here = [detector for detector in detectors if detector.layer is layer]
        yield f"## {layer.value}\n"
        yield "| detector | what is known because of it | the test that fails without it |"
        yield "|---|---|---|"
        for one in here:
            yield f"| {one.name} | {one.tells} | `{one.test}` |"
        yield ""
