"""Columns of a native result as memoryviews, which keep it alive."""

from __future__ import annotations

import functools
from typing import Any, Literal

from pytest_opprof.capture.native import ffi

_SIZES = {"q": 8, "I": 4, "i": 4, "H": 2, "B": 1}


def view_of(
    result: Any, pointer: Any, *, count: int, code: Literal["q", "I", "i", "H", "B"]
) -> memoryview[int]:
    """A read-only view of a column.

    Args:
        result: The native result that the column belongs to. It lives as long as the view.
        pointer: The column's first entry.
        count: How many entries there are.
        code: Their type, as `struct` has it.
    """
    held = ffi.gc(ffi.cast("char *", pointer), functools.partial(_hold, result))
    return memoryview(ffi.buffer(held, count * _SIZES[code])).toreadonly().cast(code)


def _hold(_owner: object, _pointer: object) -> None:
    """The destructor of a borrowed pointer: what it keeps alive until then is its first argument."""
