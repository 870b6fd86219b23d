"""The texts of interned names."""

from __future__ import annotations

import functools

from pytest_opprof.capture.native import ffi, lib


@functools.lru_cache(maxsize=1 << 16)
def name_text(name_id: int) -> str:
    """The text of an interned name."""
    length = ffi.new("uint32_t *")
    pointer = lib.op_name_text(name_id, length)
    raw = bytes(ffi.buffer(pointer, length[0]))
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:  # a C library's range, in an encoding of its own
        return raw.decode("utf-8", "backslashreplace")


def printable(text: str) -> str:
    """The text as valid UTF-8, as readers require: a lone surrogate is escaped."""
    return text.encode("utf-8", "backslashreplace").decode()
