"""The libraries of the extra ``fleet``, imported when a command needs them."""

from __future__ import annotations

import importlib
from typing import Any

from pytest_opprof.errors import UsageError


def needed(module: str) -> Any:
    """A library of the extra.

    Raises:
        UsageError: It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise UsageError(
            f"fleet commands need {library}, which is not installed: pip install 'pytest-opprof[fleet]'"
        ) from error
