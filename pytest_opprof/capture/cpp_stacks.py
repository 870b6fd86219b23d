"""C++ stacks: the functions in which an op or range began, by the names in their files."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_INTERPRETER: Final = "_PyEval_EvalFrameDefault"


@dataclass(frozen=True, slots=True, kw_only=True)
class CppFrame:
    """A call of a C or C++ function."""

    function: str  # its C++ name; "" if its file has none or can no longer be read
    module: str = ""  # path of its file; "" for code made at run time, and if the stack is from a trace file
    offset: int = 0  # of the call in the file, as ``addr2line -e MODULE`` takes it
    address: int = 0  # of the call in the process; 0 if only the function is known

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


def down_to_python(stack: Sequence[CppFrame]) -> Sequence[CppFrame]:
    """The frames inside the innermost Python call; all frames if the thread runs no Python."""
    return list(itertools.takewhile(lambda frame: not frame.is_interpreter, stack))
