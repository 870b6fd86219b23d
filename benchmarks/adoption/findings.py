"""What a person found behind the failures between two releases, which findings.toml keeps."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

_FINDINGS: Final[dict[str, dict[str, str]]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)


def sentence(project: str, *said: str) -> str:
    """What was found behind a cause or a test; of the beginnings that fit, the longest counts."""
    known = _FINDINGS.get(project, {}).items()
    fitting = {start: text for start, text in known if any(one.startswith(start) for one in said)}
    return fitting[max(fitting, key=len)] if fitting else "not looked at"
