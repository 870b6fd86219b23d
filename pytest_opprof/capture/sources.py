"""The sources that a window can record, by their names for users."""

from __future__ import annotations

from typing import Final

from pytest_opprof.capture.call_sites import CALLERS, SITES
from pytest_opprof.capture.cuda import CUDA_SOURCES
from pytest_opprof.capture.memory_source import MALLOC, PYTHON
from pytest_opprof.capture.native import lib
from pytest_opprof.capture.torch_ops import WORK

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
