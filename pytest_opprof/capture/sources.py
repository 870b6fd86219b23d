"""What users may choose of a recording: its sources by name, the share of torch's ops, the kind of stacks."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from pytest_opprof.capture.call_sites import CALLERS, SITES
from pytest_opprof.capture.cuda import CUDA_SOURCES
from pytest_opprof.capture.memory_source import MALLOC, PYTHON
from pytest_opprof.capture.native import lib
from pytest_opprof.capture.torch_ops import WORK
from pytest_opprof.errors import UsageError

MEMORY_SOURCES: Final = frozenset({PYTHON, MALLOC})
SOURCES: Final = (
    frozenset({"ranges", "ops", "ops-itt", "itt", "nvtx", "python", "modules", "cpp", SITES, CALLERS, WORK})
    | CUDA_SOURCES
    | MEMORY_SOURCES
)
DEFAULT_SOURCES: Final = frozenset({"ranges", "ops"})
# Sources that reach the collector through ITT or NVTX, and its numbers for them.
INJECTED: Final = {
    "ops-itt": lib.OP_INJECTED_TORCH,
    "itt": lib.OP_INJECTED_ITT,
    "nvtx": lib.OP_INJECTED_NVTX,
}

EVERY_OP: Final = 1.0
LEAST_SAMPLING: Final = 1e-6  # torch counts the ops until the next draw in 32 bits

StackKind: TypeAlias = Literal["python", "cpp", "all"]
WithStack: TypeAlias = bool | StackKind

_SOURCES: Final[dict[object, frozenset[str]]] = {
    False: frozenset(),
    True: frozenset({"python"}),
    "python": frozenset({"python"}),
    "cpp": frozenset({"cpp"}),
    "all": frozenset({"python", "cpp"}),
}


def parse_sampling(given: object, *, where: str) -> float:
    """The requested share of ops; a `UsageError` unless it is a number from `LEAST_SAMPLING` to 1."""
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if is_number and LEAST_SAMPLING <= given <= EVERY_OP:  # type: ignore[operator]  # a number, and no NaN
        return float(given)  # type: ignore[arg-type]
    raise UsageError(
        f"{where}: sampling is {given!r}; it is the share of torch's ops to record, from {LEAST_SAMPLING:g} "
        "(one in a million) to 1 (all of them)"
    )


def stack_sources(given: object, *, where: str) -> frozenset[str]:
    """The sources of the stacks that ``with_stack`` asks for: True is ``"python"``, as torch means it."""
    if isinstance(given, bool | str) and given in _SOURCES:
        return _SOURCES[given]
    raise UsageError(f"{where}: with_stack must be True or False, 'python', 'cpp' or 'all', not {given!r}")
