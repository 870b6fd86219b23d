"""What a person found behind the failures between two releases, which findings.toml keeps."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

_FINDINGS: Final[dict[str, dict[str, str]]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)


def sentence(project: str, cause: str) -> str:
    """What was found behind a cause; of the beginnings that fit, the longest counts."""
    fitting = {start: text for start, text in _FINDINGS.get(project, {}).items() if cause.startswith(start)}
    return fitting[max(fitting, key=len)] if fitting else "not looked at"
