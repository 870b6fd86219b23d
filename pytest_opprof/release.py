"""Which release of pytest-opprof this is."""

from __future__ import annotations

import importlib.metadata
from functools import cache
from typing import Final

DISTRIBUTION: Final = "pytest-opprof"


@cache
def version() -> str:
    """This release, as its distribution says."""
    return importlib.metadata.version(DISTRIBUTION)
