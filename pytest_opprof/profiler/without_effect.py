"""Arguments of torch's that can have no effect here: they are accepted, and a warning says why."""

from __future__ import annotations

import warnings

_CALLER = 3  # of the function that was given the argument


def warn_of_python_export(*, asked: bool) -> None:
    """Of ``use_python_export``."""
    if asked:
        warnings.warn(
            "use_python_export: accepted, but there is one way to write a trace here", stacklevel=_CALLER
        )


def warn_of_accumulation(*, asked: bool) -> None:
    """Of ``acc_events`` of the older profile."""
    if asked:
        warnings.warn(
            "acc_events: accepted, but this profile is entered once and has nothing to add up; "
            "pytest_opprof.profile records cycle after cycle",
            stacklevel=_CALLER,
        )
