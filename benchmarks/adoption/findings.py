"""What a person found behind the failures between two releases, by project and the beginning of a cause."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FINDINGS: Final[Mapping[str, Mapping[str, str]]] = {}


def sentence(project: str, cause: str) -> str:
    """What was found behind a cause; the longest beginning that fits says it."""
    fitting = {start: text for start, text in FINDINGS.get(project, {}).items() if cause.startswith(start)}
    return fitting[max(fitting, key=len)] if fitting else "not looked at"
