"""The release of pytest-opprof."""

from __future__ import annotations

import importlib.metadata
from functools import cache
from typing import Final

DISTRIBUTION: Final = "pytest-opprof"


@cache
def version() -> str:
    """This release, from the distribution's metadata."""
    return importlib.metadata.version(DISTRIBUTION)
