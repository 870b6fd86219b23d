"""Arguments of torch's that can have no effect here: they are accepted, and a warning says why."""

from __future__ import annotations

import warnings


def warn_of_python_export(*, asked: bool) -> None:
    """Of ``use_python_export``."""
    if asked:
        warnings.warn("use_python_export: accepted, but there is one way to write a trace here", stacklevel=3)
