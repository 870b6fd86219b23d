"""Machine instructions of this process, by function, which QEMU counts under `opprof replay`."""

from __future__ import annotations

import array
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pytest_opprof.capture.instructions import Counted
from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import check, name_text
from pytest_opprof.capture.replay import COUNTS
from pytest_opprof.errors import CaptureUnavailableError
from pytest_opprof.regular_files import open_regular

_UNNAMED: Final = "functions without a name"


class MachineInstructionCounter:
    """Counts the machine instructions of this process between `start` and `stop`."""

    def __init__(self) -> None:
        self._path = Path(f"{os.environ.get(COUNTS, '')}-{os.getpid()}")

    def start(self) -> None:
        """Count from here on."""
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:  # the folder is shared, so the file may be another user's
            raise CaptureUnavailableError(f"machine instructions were not counted: {error}") from error
        lib.op_replay_begin()

    def stop(self) -> Counted:
        """Stop counting."""
        lib.op_replay_end()
        counts = self._own_file()
        if counts is None:
            raise CaptureUnavailableError(
                "machine instructions were not counted: this process does not run under QEMU (pytest-xdist's "
                "workers never do). Run `opprof replay` without -n"
            )
        self._path.unlink()
        return Counted((_by_function(counts),))

    def _own_file(self) -> bytes | None:
        """What QEMU's plugin wrote; None if the file is missing or another user's."""
        try:
            with open_regular(self._path) as file:
                return file.read() if os.fstat(file.fileno()).st_uid == os.geteuid() else None
        except OSError:
            return None


def _by_function(counts: bytes) -> Mapping[str, int]:
    """Sum pairs of an address and a count by the function at the address."""
    pairs = array.array("Q", counts)
    by_address = Counter[int]()
    for address, instructions in zip(pairs[::2], pairs[1::2], strict=True):
        by_address[address] += instructions
    addresses = sorted(by_address)
    files, functions = (ffi.new("uint32_t[]", len(addresses)) for _ in range(2))
    check(lib.op_code_names(ffi.new("uint64_t[]", addresses), len(addresses), files, functions))
    found = Counter[str]()
    for address, file, function in zip(addresses, files, functions, strict=True):
        found[_place(function, file)] += by_address[address]
    return found


def _place(function: int, file: int) -> str:
    where = Path(name_text(file)).name if file else "code in no file"
    return f"{name_text(function)}, {where}" if function else f"{_UNNAMED}, {where}"
