"""Session files: this process's own, and those of others, in which nothing is trusted."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_opprof.capture.folders import POOL_BYTES, session_folders, spill_folder
from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import check, last_error
from pytest_opprof.capture.recording import Recording
from pytest_opprof.errors import CollectorError, UsageError
from pytest_opprof.units import parse_bytes

LONGEST_NOTE: Final[int] = lib.OP_NOTE_BYTES


def open_native_session() -> None:
    """Open the session in the first folder that takes its file, else in anonymous memory."""
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
            # Multiprocessing's workers skip atexit, but run their own finalizers.
            if (util := sys.modules.get("multiprocessing.util")) is not None:
                util.Finalize(None, lib.op_session_close, exitpriority=-100)
            return
    raise CollectorError(f"the collector has no memory to record into: {last_error()}")


def _byte_budget() -> int:
    """The most bytes that one window may record; 0 for the collector's default, 2 GiB."""
    text = os.environ.get("OPPROF_MAX_BYTES")
    if not text:
        return 0
    try:
        return parse_bytes(text)
    except UsageError as error:
        raise UsageError(f"OPPROF_MAX_BYTES: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFile:
    """What a session file says about its process."""

    path: Path
    pid: int
    is_alive: bool  # the process still has it open
    was_recording: bool
    keeps_last: bool  # the window keeps the newest events, so its beginning may be missing
    opened_ns: int  # when the session began, nanoseconds since the epoch
    note: bytes  # what the process said it was doing; empty for nothing
    names_path: Path  # the file with the recording's names
    spill_path: Path | None  # the file for what the pool could not hold; None if there is none


def read_session_file(path: Path) -> SessionFile:
    """Read the session file of a living or dead process.

    Raises a `RecoveryError` if it is not of this user and this release.
    """
    left = ffi.new("op_left *")
    check(lib.op_recover_look(os.fsencode(path), left))
    spill = ffi.string(left.spill_path)
    return SessionFile(
        path=path,
        pid=left.pid,
        is_alive=bool(left.is_alive),
        was_recording=left.window != 0,
        keeps_last=bool(left.keeps_last),
        opened_ns=left.opened_ns,
        note=ffi.buffer(left.note, left.note_bytes)[:],
        names_path=type(path)(os.fsdecode(ffi.string(left.names_path))),
        spill_path=type(path)(os.fsdecode(spill)) if spill else None,
    )


def recovered(path: Path) -> Recording:
    """The last window of a process that died while recording.

    Raises a `CaptureBusyError` if the process is alive, and a `RecoveryError` if nothing can be recovered.
    """
    result = ffi.new("op_result **")
    check(lib.op_recover(os.fsencode(path), result))
    return Recording(result[0], sources=())
