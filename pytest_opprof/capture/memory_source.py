"""Where memory events come from when it is not torch: Python's own allocators, or the malloc family.

Of devices it is CUPTI, beside these (`cuda_source.py`).
"""

from __future__ import annotations

import functools
import gc

from pytest_opprof.capture.native import fast, lib
from pytest_opprof.capture.native_calls import check
from pytest_opprof.errors import CaptureUnavailableError

PYTHON = "memory-python"
MALLOC = "memory-malloc"


class PythonMemory:
    """Hooks on the three domains of Python's allocator: objects, and what extensions take through Python.

    Attributes:
        name: The source's word in documents.
    """

    name = PYTHON

    def enable(self) -> None:
        """Put the hooks over the allocators that are there."""
        fast.pymem_start()

    def disable(self) -> None:
        """Put those allocators back."""
        fast.pymem_stop()

    def settle(self) -> None:
        """Empty Python's free lists, whose objects are taken and given back past its allocators.

        A step is about to begin, and equal steps are to find equal allocators. A full collection does that,
        and has the next one come after as many objects in each step.
        """
        gc.collect()


class MallocMemory:
    """What the loaded libraries take by malloc() and its like, such as the data of NumPy's arrays.

    Not what the C library takes for itself, what is mapped without malloc(), as the arenas of Python's small
    objects are, or what a library takes that was loaded after the window opened.
    """

    name = MALLOC

    def enable(self) -> None:
        """Let each library's table of imported functions point to us.

        Raises:
            CaptureUnavailableError: The interpreter's own calls of malloc do not come by.
        """
        check(fast.watch_malloc())

    def disable(self) -> None:
        """Let them point to malloc() again."""
        lib.op_malloc_unwatch()

    def settle(self) -> None:
        """Nothing: what malloc() keeps back is taken and given back through it."""


@functools.cache
def malloc_problem() -> str | None:
    """Why malloc cannot be watched in this process, and what to do; None where it can be."""
    source = MallocMemory()
    try:
        source.enable()
    except CaptureUnavailableError as error:
        return f"{error}; ask for {PYTHON} instead"
    source.disable()
    return None
