"""The native session of this process: where its file lies, how much a window may hold, and when it closes."""

from __future__ import annotations

import os
import sys

from pytest_opprof.capture.folders import POOL_BYTES, session_folders, spill_folder
from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import last_error
from pytest_opprof.errors import CollectorError, UsageError
from pytest_opprof.units import parse_bytes


def open_native_session() -> None:
    """Open the session in the first folder that takes its file, else in anonymous memory.

    Raises:
        UsageError: ``OPPROF_MAX_BYTES`` is not a number of bytes.
        CollectorError: There is no memory for the pool.
    """
    spill = os.fsencode(spill_folder())
    limit = _byte_budget()
    for folder in [*map(os.fsencode, session_folders()), None]:
        config = ffi.new("op_config *")
        held = [ffi.new("char[]", text) for text in (folder, spill) if text is not None]
        config.pool_dir = held[0] if folder is not None else ffi.NULL
        config.spill_dir = held[-1]
        config.pool_bytes = POOL_BYTES
        config.max_bytes = limit
        if lib.op_session_open(config) == lib.OP_OK:
            _close_with_a_worker()
            return
    raise CollectorError(f"the collector has no memory to record into: {last_error()}")


def _close_with_a_worker() -> None:
    """Close it in multiprocessing's workers, which skip atexit but run their own finalizers."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.Finalize(None, lib.op_session_close, exitpriority=-100)


def _byte_budget() -> int:
    """The most bytes that one window may record; 0 for the collector's default, 2 GiB."""
    text = os.environ.get("OPPROF_MAX_BYTES")
    if not text:
        return 0
    try:
        return parse_bytes(text)
    except UsageError as error:
        raise UsageError(f"OPPROF_MAX_BYTES: {error}") from error
