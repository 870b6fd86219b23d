"""Import the libraries of extras on demand."""

from __future__ import annotations

import importlib
from typing import Any

from pytest_opprof.errors import UsageError


def needed(module: str, *, extra: str = "fleet", by: str = "opprof fleet") -> Any:
    """Import a library of an extra, which `by` needs; UsageError if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise UsageError(f"{by} needs {library}: pip install 'pytest-opprof[{extra}]'") from error
