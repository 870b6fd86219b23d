"""Instructions by function: the bytecodes that a thread runs, or what QEMU counts under `opprof replay`."""

from __future__ import annotations

import array
import hashlib
import os
import platform
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_opprof.capture.call_sites import library_folders
from pytest_opprof.capture.folders import start_folder
from pytest_opprof.capture.native import fast, ffi, lib
from pytest_opprof.capture.native_calls import check, name_text
from pytest_opprof.capture.python_calls import free_tool
from pytest_opprof.capture.replay import COUNTS
from pytest_opprof.errors import CaptureUnavailableError
from pytest_opprof.regular_files import open_regular

_MONITORING: Final[Any] = getattr(sys, "monitoring", None)  # since 3.12
# The others belong to debuggers, coverage, profilers and optimizers. `python_calls` prefers 3.
_TOOL_IDS: Final = (4, 3)
_TOOL_NAME: Final = "pytest-opprof instructions"
_OWN: Final = str(Path(__file__).parents[1]) + os.sep
_THREADS: Final = "other threads ran Python code at the same time, and how much depends on the machine"
_DISPLACED: Final = "the test set its own trace function, and Python 3.11 has only one"
_UNNAMED: Final = "functions without a name"


class FunctionCalls(NamedTuple):
    """Calls of a function that a line of the project made. A generator is called when it starts."""

    function: str  # its name and file (``Block.forward, model.py``)
    file: str  # the line's file
    caller: str
    line: int
    calls: int  # how often


@dataclass(frozen=True, slots=True)
class Counted:
    """The instructions of a stretch of code."""

    # for each metric of the counter, by function and file (``Block.forward, model.py``)
    rows: tuple[Mapping[str, int], ...]
    doubt: str = ""  # why they may differ next time; empty if nothing suggests it
    calls: tuple[FunctionCalls, ...] = ()  # of functions by lines of the project, if they were noted

    @property
    def totals(self) -> tuple[int, ...]:
        """For each metric, the sum of its rows."""
        return tuple(sum(row.values()) for row in self.rows)


class InstructionCounter:
    """Counts the bytecodes of the calling thread between `start` and `stop`; ours are left out.

    Raises:
        CaptureUnavailableError: Another tool holds what it needs.
    """

    def __init__(self) -> None:
        self._tool = -1
        if _MONITORING is not None:
            self._tool = free_tool(_TOOL_IDS, cannot="Python instructions cannot be counted")
        elif (tracer := sys.gettrace()) is not None:
            module = getattr(tracer, "__module__", None) or type(tracer).__module__
            raise CaptureUnavailableError(
                f"Python instructions cannot be counted: {module.partition('.')[0]} holds the only trace "
                "function of Python 3.11. Stop it, or use Python 3.12 or later"
            )

    def start(self) -> None:
        """Count from here on."""
        try:
            fast.instructions_start(library_folders())
        except RuntimeError as error:
            raise CaptureUnavailableError(f"Python instructions cannot be counted: {error}") from error
        if _MONITORING is not None:
            _MONITORING.use_tool_id(self._tool, _TOOL_NAME)
            _MONITORING.register_callback(self._tool, _MONITORING.events.INSTRUCTION, fast.on_instruction)
            _MONITORING.set_events(self._tool, _MONITORING.events.INSTRUCTION)

    def stop(self) -> Counted:
        """Stop counting; the first rows are of the project's own files, the second of all other code."""
        if _MONITORING is not None:
            _MONITORING.set_events(self._tool, 0)
            _MONITORING.register_callback(self._tool, _MONITORING.events.INSTRUCTION, None)
            _MONITORING.free_tool_id(self._tool)
        rows, calls, has_others, is_whole = fast.instructions_stop()
        project, libraries = Counter[str](), Counter[str]()
        for file, function, count in rows:
            if not file.startswith(_OWN):
                rows_of_kind = project if _is_of_project(file) else libraries
                rows_of_kind[_named(file, function, start_folder())] += count
        doubt = _THREADS if has_others else "" if is_whole else _DISPLACED
        noted = tuple(
            FunctionCalls(_named(file, function, start_folder()), caller_file, caller, line, many)
            for file, function, caller_file, caller, line, many in calls
            if not file.startswith(_OWN) and not caller_file.startswith(_OWN)
        )
        return Counted((project, libraries), doubt, noted)


@cache
def installed_libraries() -> str:
    """The interpreter's version, and a digest of the packages installed from an index.

    A package installed from a folder is being worked on: its version may change with each commit.
    """
    text = "\n".join(sorted(_distributions()))
    return f"{platform.python_version()} {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _distributions() -> Iterator[str]:
    for folder in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in Path(folder).glob("*.dist-info"):
            if not (entry / "direct_url.json").exists():
                yield entry.name


@cache
def _is_of_project(file: str) -> bool:
    # `<frozen importlib>` and what dataclasses generate are in no file.
    return bool(file) and not file.startswith(("<", *library_folders()))


@cache
def _named(file: str, function: str, start: Path) -> str:
    """``Block.forward, model.py``, without a line: a comment above the function must change nothing."""
    if not _is_of_project(file):
        folder = max(filter(file.startswith, library_folders()), key=len, default="")
        return f"{function}, {file.removeprefix(folder)}"
    return f"{function}, {file.removeprefix(f'{start}{os.sep}')}"


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
