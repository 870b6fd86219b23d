"""Memory events from Python's own allocators or the malloc family, in place of torch's.

CUPTI reports device memory beside these (`cuda.py`).
"""

from __future__ import annotations

import functools
import gc
from typing import Final

from pytest_opprof.capture.native import fast, lib
from pytest_opprof.capture.native_calls import check
from pytest_opprof.errors import CaptureUnavailableError

PYTHON = "memory-python"
MALLOC = "memory-malloc"
_REMOVED: Final = (
    "Python's memory was recorded only in part: tracemalloc.stop(), or another hook on Python's allocators, "
    "removed ours. Stop it before the recording or after it"
)


class PythonMemory:
    """Hooks on the three domains of Python's allocator: objects, and what extensions take through Python."""

    name = PYTHON

    def enable(self) -> None:
        """Install the hooks over the current allocators."""
        fast.pymem_start()

    def disable(self) -> dict[str, str]:
        """Restore those allocators; if the hooks were removed before, why the source ended early."""
        return {self.name: _REMOVED} if fast.pymem_stop() else {}

    def settle(self) -> None:
        """Empty Python's free lists, which bypass its allocators, so that equal steps count equal memory.

        A full collection does that, and makes the next one come after as many objects in each step.
        """
        gc.collect()


class MallocMemory:
    """What the loaded libraries take by malloc() and its like, such as the data of NumPy's arrays.

    It does not see the C library's own memory, memory mapped without malloc() (such as the arenas of
    Python's small objects), or libraries loaded after the window opened.
    """

    name = MALLOC

    def enable(self) -> None:
        """Point each library's table of imported functions to us."""
        check(fast.watch_malloc())

    def disable(self) -> dict[str, str]:
        """Point them to malloc() again, which nothing else does."""
        lib.op_malloc_unwatch()
        return {}

    def settle(self) -> None:
        """Do nothing: what malloc() caches is still taken through malloc()."""


@functools.cache
def malloc_problem() -> str | None:
    """Why malloc cannot be watched in this process, and what to do; None if it can."""
    source = MallocMemory()
    try:
        source.enable()
    except CaptureUnavailableError as error:
        return f"{error}; ask for {PYTHON} instead"
    source.disable()
    return None
