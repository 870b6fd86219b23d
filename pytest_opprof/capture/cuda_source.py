"""CUDA's activities as a source of events."""

from __future__ import annotations

from typing import Final

from pytest_opprof.capture import cuda
from pytest_opprof.capture.cuda import CUDA, CUDA_IF_USED, CudaState
from pytest_opprof.capture.native import lib

CUDA_SOURCES: Final = frozenset({CUDA, CUDA_IF_USED})
# Names in saved runs of device memory: what CUDA calls take, and what torch's allocators give out.
MEMORY_CUDA: Final = "memory-cuda"
TENSORS_CUDA: Final = "memory-cuda-tensors"


class CudaSource:
    """Checks CUDA anew for each window, as it may start at any time.

    Attributes:
        problem: Why requested CUDA events were not recorded, or not all of them; None if they were.
        memory_problem: Why device memory is not recorded although the rest is; None if it is.
    """

    def __init__(self) -> None:
        self.problem: str | None = None
        self.memory_problem: str | None = None
        self._is_asked_for = self._is_wanted = self._is_recording = False

    def find(self, sources: frozenset[str]) -> bool:
        """Check whether CUDA can be recorded by now; `CUDA_IF_USED` is no problem if nothing uses it."""
        self.problem = self.memory_problem = None
        self._is_asked_for = CUDA in sources
        self._is_wanted = not sources.isdisjoint(CUDA_SOURCES)
        if not self._is_wanted:
            return False
        answer = cuda.open_cuda()
        if answer.state is CudaState.ABSENT:
            may_come = cuda.has_driver()
            self.problem = answer.reason if self._is_asked_for and not may_come else None
        elif answer.state is not CudaState.READY:
            self.problem = answer.reason
        return answer.state is CudaState.READY

    def choose(self, sources: frozenset[str], *, with_memory: bool) -> None:
        """Choose before a window whether it records CUDA.

        Args:
            with_memory: Also record the device memory that CUDA calls take and give back.
        """
        is_ready = self.find(sources)
        taken = cuda.other_profiler() if is_ready else None
        if taken is not None:
            self.problem = taken
        elif not is_ready and self._is_asked_for and self.problem is None:
            self.problem = "nothing in this process has started CUDA yet"
        self._is_recording = is_ready and taken is None
        parts = lib.OP_CUDA_WORK | (lib.OP_CUDA_MEMORY if with_memory else 0)
        lib.op_cuda_record(parts if self._is_recording else 0)

    def started(self) -> tuple[str, ...]:
        """Note that the window has opened; the names of what it records."""
        if not self._is_recording:
            return ()
        parts = lib.op_cuda_parts()
        self._is_recording = bool(parts)
        if not parts:
            self.problem = cuda.recording_problem()
            return ()
        self.memory_problem = cuda.recording_problem() or None
        return (CUDA, MEMORY_CUDA) if parts & lib.OP_CUDA_MEMORY else (CUDA,)

    def stopped(self) -> None:
        """Note that the window has closed, and check whether it lost CUDA events."""
        if self._is_recording:
            later = cuda.recording_problem()
            self.problem = later if later and later != self.memory_problem else None
        elif self._is_wanted and cuda.is_started() and self.problem is None:
            self.problem = (
                "CUDA started during the recording, so its events are missing: begin with a warm-up step"
            )
        self._is_recording = False
