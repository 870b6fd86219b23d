"""Make large values without the garbage collector, which would search for cycles in vain."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Make values without cycles: a document's rows, or values made from them.

    Python searches for cycles after every so many new objects. Among a million rows it searches all again and
    again, which takes as long as reading them. If the collector is off already, nothing changes.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
