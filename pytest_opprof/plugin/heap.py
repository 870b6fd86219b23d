"""Keep garbage collections from searching the heap of before the tests."""

from __future__ import annotations

import gc
from typing import Final

_MANY: Final = 5_000  # objects: a collection looks at them in a fraction of a millisecond


class RestingHeap:
    """Freezes living objects before a marked test, and unfreezes them before unmarked tests.

    A window begins with a full collection, or a due one would land in it. With a framework imported that
    takes longer than most tests. A frozen object is still freed with its last reference; only cycles wait
    until the heap is unfrozen.
    """

    def __init__(self) -> None:
        self._is_ours = False
        self._walked = 0  # objects when all were searched
        self._since = 0

    def freeze(self) -> None:
        """A marked test is about to be set up. A heap that somebody else froze is left alone."""
        if self._is_ours:
            since = len(gc.get_objects())
            if since < _MANY:
                return
            self._since += since
            # All is searched only when it has doubled, so a suite pays for that once.
            if self._since > self._walked:
                self.thaw()
        elif gc.get_freeze_count() > 0:
            return
        gc.collect()
        gc.freeze()
        if not self._is_ours:
            self._is_ours, self._walked, self._since = True, gc.get_freeze_count(), 0

    def thaw(self) -> None:
        """Unfreeze all."""
        if self._is_ours:
            gc.unfreeze()
            self._is_ours = False
