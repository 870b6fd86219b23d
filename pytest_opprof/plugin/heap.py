"""The heap that was there before the tests, which no collection of garbage has to walk through."""

from __future__ import annotations

import gc
from typing import Final

_MANY: Final = 5_000  # objects: a collection looks at them in a fraction of a millisecond


class RestingHeap:
    """Freezes what is alive before a marked test, and puts it back for tests that are not marked.

    A window begins with a full collection, or one that was due would land in it. With a framework imported
    that takes longer than most tests. What is frozen is freed as ever when its last reference goes; only
    cycles of it wait until it is put back.
    """

    def __init__(self) -> None:
        self._is_ours = False
        self._walked = 0  # objects that were there when all were looked at
        self._since = 0

    def freeze(self) -> None:
        """A marked test is about to be set up. A heap that somebody else has frozen is left as it is."""
        if self._is_ours:
            since = len(gc.get_objects())
            if since < _MANY:
                return
            self._since += since
            # A heap that doubles is walked through as often as it has bits, so a suite pays for it once.
            if self._since > self._walked:
                self.thaw()
        elif gc.get_freeze_count() > 0:
            return
        gc.collect()
        gc.freeze()
        if not self._is_ours:
            self._is_ours, self._walked, self._since = True, gc.get_freeze_count(), 0

    def thaw(self) -> None:
        """Put all back."""
        if self._is_ours:
            gc.unfreeze()
            self._is_ours = False
