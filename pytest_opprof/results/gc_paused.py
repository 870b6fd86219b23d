"""Large values made without the garbage collector, which looks for circles where there are none."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Make what refers to nothing in circles: a document's rows, or what follows from them.

    Python looks for circles whenever so many objects more are there. Of a million rows it goes through all
    again and again, which takes as long as reading them. Elsewhere, or where the collector is off already,
    nothing changes.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
