"""C++ stacks: the functions in which an op or range began, by the names in their files."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import check, name_text

_INTERPRETER: Final = "_PyEval_EvalFrameDefault"


@dataclass(frozen=True, slots=True, kw_only=True)
class CppFrame:
    """A call of a C or C++ function.

    Attributes:
        function: Its C++ name; "" if its file has none or can no longer be read.
        module: Path of its file; "" for code made at run time, and if the stack is from a trace file.
        offset: Of the call in the file, as ``addr2line -e MODULE`` takes it.
        address: Of the call in the process; 0 if only the function is known.
    """

    function: str
    module: str = ""
    offset: int = 0
    address: int = 0

    def __str__(self) -> str:
        place = f"{self.module}({self.offset:#x})" if self.module else f"({self.address:#x})"
        return f"{place}: {self.name}" if self.address else self.name

    @property
    def name(self) -> str:
        """The function's name; ``??`` for none, as in addr2line."""
        return self.function or "??"

    @property
    def is_interpreter(self) -> bool:
        """Whether it runs Python code: the Python stack shows its callers already."""
        return self.function.startswith(_INTERPRETER)


class CppStacks:
    """The C++ stacks of one native ``op_result``; creating this looks up the names of all frames."""

    def __init__(self, result: Any) -> None:
        self._result = result
        rows = ffi.new("op_cpp_frame **")
        count = ffi.new("uint64_t *")
        check(lib.op_result_cpp_frames(result, rows, count))
        self._rows = rows[0]
        self._frames: dict[int, CppFrame] = {}

    def stack(self, event: int) -> tuple[CppFrame, ...]:
        """The frames in which an event began, innermost first; empty if they were not recorded."""
        found = []
        at: int = lib.op_result_cpp_stack(self._result, event) - 1
        while at >= 0:
            found.append(self._frame(at))
            at = self._rows[at].caller
        return tuple(found)

    def _frame(self, at: int) -> CppFrame:
        if at not in self._frames:
            row = self._rows[at]
            self._frames[at] = CppFrame(
                function=name_text(row.symbol) if row.symbol else "",
                module=name_text(row.module) if row.module else "",
                offset=row.offset,
                address=row.address,
            )
        return self._frames[at]


def down_to_python(stack: Sequence[CppFrame]) -> Sequence[CppFrame]:
    """The frames inside the innermost Python call; all frames if the thread runs no Python."""
    return list(itertools.takewhile(lambda frame: not frame.is_interpreter, stack))
