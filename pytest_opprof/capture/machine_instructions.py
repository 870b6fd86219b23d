"""Machine instructions of this process, by function: QEMU counts them where `opprof replay` started it."""

from __future__ import annotations

import array
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_opprof.capture.names import name_text
from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import check
from pytest_opprof.capture.replay import COUNTS
from pytest_opprof.errors import CaptureUnavailableError

_BEGIN: Final = 1
_END: Final = 2
_UNNAMED: Final = "functions without a name"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineInstructions:
    """The machine instructions of a stretch of code.

    Attributes:
        functions: By function and shared object: ``at::native::add_kernel, libtorch_cpu.so``.
        doubt: Empty: nothing says that they are not whole.
    """

    functions: Mapping[str, int]
    doubt: str = ""

    @property
    def rows(self) -> tuple[Mapping[str, int], ...]:
        """By metric, then by function."""
        return (self.functions,)


class MachineInstructionCounter:
    """Counts the machine instructions of this process between `start` and `stop`."""

    def __init__(self) -> None:
        self._path = Path(f"{os.environ.get(COUNTS, '')}-{os.getpid()}")

    def start(self) -> None:
        """Count from here on."""
        self._path.unlink(missing_ok=True)
        lib.op_replay_mark(_BEGIN)

    def stop(self) -> MachineInstructions:
        """Stop counting.

        Raises:
            CaptureUnavailableError: Nothing counted: the process does not run under QEMU.
        """
        lib.op_replay_mark(_END)
        try:
            counts = self._path.read_bytes()
        except FileNotFoundError as error:
            raise CaptureUnavailableError(
                "machine instructions were not counted: this process does not run under QEMU, as workers of "
                "pytest-xdist do not; run `opprof replay` without -n"
            ) from error
        self._path.unlink()
        return MachineInstructions(functions=_by_function(counts))


def _by_function(counts: bytes) -> Mapping[str, int]:
    """Sum pairs of an address and a number up by the function that the address is in."""
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
