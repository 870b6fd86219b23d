"""Session files of other processes, as the collector reads them; nothing in them is trusted."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import check
from pytest_opprof.capture.recording import Recording

LONGEST_NOTE: Final[int] = lib.OP_NOTE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFile:
    """What a session file says of its process.

    Attributes:
        is_alive: That process has it open still.
        keeps_last: And kept what began last, so that what is missing of it is its beginning.
        opened_ns: When the session began, nanoseconds since the epoch.
        note: What the process said it was doing; empty for nothing.
        names_path: The file that has the recording's names.
        spill_path: The file for what the pool could not hold; None where there is none.
    """

    path: Path
    pid: int
    is_alive: bool
    was_recording: bool
    keeps_last: bool
    opened_ns: int
    note: bytes
    names_path: Path
    spill_path: Path | None


def read_session_file(path: Path) -> SessionFile:
    """Look at a session file, of a living process or a dead one.

    Raises:
        RecoveryError: It is not a session file of this user and this release.
        CollectorError: It cannot be opened, as when it is gone by now.
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
    """The last window of a process that died in it.

    Raises:
        CaptureBusyError: The process lives.
        RecoveryError: Nothing was being recorded, or the file is damaged.
        CollectorError: A file is gone, or there is no memory.
    """
    result = ffi.new("op_result **")
    check(lib.op_recover(os.fsencode(path), result))
    return Recording(result[0], sources=())
