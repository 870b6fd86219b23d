"""A detector: a place in the code that notices or reports that something is missing."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Layer(enum.Enum):
    """Where a detector is on the way from an event to its reader."""

    RECORDING = "What is noticed while recording"
    DOCUMENT = "What files say"
    VERDICT = "What verdicts say"
    TABLE = "What tables and reports say"
    SESSION = "What sessions and commands say"


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """One place that reports a loss, the edit that silences it, and the test that fails then.

    Attributes:
        name: Short and unique.
        layer: Where it is.
        tells: What is known because of it.
        file: Its path from the repository's root.
        text: A piece of that file that occurs once.
        without: The same piece, silenced.
        test: ``tests/unit/x.py::test_y``, or ``native/tests/test_x.c::a_check``.
    """

    name: str
    layer: Layer
    tells: str
    file: str
    text: str
    without: str
    test: str

    def edited(self, root: Path) -> str:
        """The file's text with the edit.

        Args:
            root: Of the sources.

        Raises:
            ValueError: The piece of text is not there exactly once.
        """
        whole = (root / self.file).read_text(encoding="utf-8")
        found = whole.count(self.text)
        if found != 1:
            raise ValueError(f"{self.name}: {self.file} has its text {found} times: {self.text!r}")
        return whole.replace(self.text, self.without)
