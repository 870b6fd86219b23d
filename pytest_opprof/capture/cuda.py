"""CUDA's activities as a source of events: whether CUPTI can record them in this process, and why not."""

from __future__ import annotations

import ctypes
import enum
import os
import site
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import last_error, text_at
from pytest_opprof.capture.torch_ops import imported_torch

CUDA: Final = "cuda"  # the source's name in saved runs
CUDA_IF_USED: Final = "cuda-if-used"  # the same, but no problem if nothing uses CUDA
CUDA_SOURCES: Final = frozenset({CUDA, CUDA_IF_USED})
# Names in saved runs of device memory: what CUDA calls take, and what torch's allocators give out.
MEMORY_CUDA: Final = "memory-cuda"
TENSORS_CUDA: Final = "memory-cuda-tensors"
_PATH: Final = "OPPROF_CUPTI_PATH"
_DRIVER_FILES: Final = (Path("/dev/nvidiactl"), Path("/dev/dxg"))  # the second in WSL


class CudaState(enum.Enum):
    """Whether CUDA's activities can be recorded; the numbers are the collector's."""

    READY = lib.OP_CUDA_READY
    ABSENT = lib.OP_CUDA_ABSENT
    NO_CUPTI = lib.OP_CUDA_NO_CUPTI
    TOO_OLD = lib.OP_CUDA_TOO_OLD
    TAKEN = lib.OP_CUDA_TAKEN
    FORBIDDEN = lib.OP_CUDA_FORBIDDEN
    FORKED = lib.OP_CUDA_FORKED
    FAILED = lib.OP_CUDA_FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaAnswer:
    """Whether CUDA can be recorded here."""

    state: CudaState
    reason: str = ""  # why it cannot, and what to do, for the end of a sentence; "" if it can


def is_loaded() -> bool:
    """Whether this process has loaded CUDA's driver; loads nothing."""
    return bool(lib.op_cuda_is_loaded())


def _is_started() -> bool:
    """Whether CUDA runs in this process by now."""
    return is_loaded() and open_cuda().state is not CudaState.ABSENT


def is_available() -> bool:
    """Whether this process uses CUDA, or its torch says that it could."""
    torch = imported_torch()
    return is_loaded() or (torch is not None and bool(torch.cuda.is_available()))


def open_cuda() -> CudaAnswer:
    """Find CUPTI and check whether it can record; loads nothing unless this process has started CUDA.

    The first call sets CUPTI up, which may take a second; later calls are cheap.
    """
    named = os.environ.get(_PATH)
    # The search takes longer than opening a window: search only if CUPTI is about to be loaded.
    is_to_load = is_loaded() and not library()
    held = [ffi.new("char[]", os.fsencode(path)) for path in (_candidates() if is_to_load else ())]
    paths = ffi.new("char *[]", held)
    name = ffi.new("char[]", os.fsencode(named)) if named else ffi.NULL
    state = CudaState(lib.op_cuda_open(name, paths, len(held)))
    if state is CudaState.READY:
        return CudaAnswer(state=state)
    if state is CudaState.ABSENT and not has_driver():
        return CudaAnswer(state=state, reason="there is no NVIDIA driver (libcuda.so.1) on this machine")
    return CudaAnswer(state=state, reason=last_error())


def start_driver() -> str | None:
    """Start CUDA in this process, which must not fork afterwards; why it does not start, or None."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no driver: libcuda.so.1 not found. Install the NVIDIA driver, or ignore this"
    code: int = driver.cuInit(0)
    if code == 0:
        return None
    return f"the NVIDIA driver does not start (cuInit gives {code}): see nvidia-smi, or CUDA_VISIBLE_DEVICES"


def has_driver() -> bool:
    """Whether there is an NVIDIA driver: its device files, or its library in this process."""
    return is_loaded() or any(path.exists() for path in _DRIVER_FILES)


def library() -> str:
    """The libcupti in use and its API version; "" before one is loaded."""
    path = text_at(lib.op_cuda_library())
    return f"{path} (API {lib.op_cuda_version()})" if path else ""


def recording_problem() -> str:
    """Why the last window that should have recorded CUDA did not, or only in part; "" if it did."""
    return text_at(lib.op_cuda_problem())


def pause(*, paused: bool) -> None:
    """Record no new CUDA activities from here on, or record them again; ops are recorded meanwhile."""
    lib.op_window_pause_cuda(int(paused))


def other_profiler() -> str | None:
    """Why CUDA cannot be recorded now: torch's own profiler holds it; None if it does not."""
    torch = imported_torch()
    profiler = sys.modules.get("torch.autograd.profiler") if torch is not None else None
    if profiler is None or not getattr(profiler, "_is_profiler_enabled", False):
        return None
    return "torch.profiler is recording in this process and holds CUPTI: use one profiler at a time"


def _candidates() -> Iterator[str]:
    """Paths of libcupti in CUDA's wheels, its toolkit and the system, best first."""
    torch = imported_torch()
    torchs = str(torch.version.cuda).partition(".")[0] if torch is not None else ""
    majors = sorted((12, 13), key=lambda major: (str(major) != torchs, -major))
    wheels = {12: "nvidia/cuda_cupti/lib", 13: "nvidia/cu13/lib"}
    folders = [*dict.fromkeys([*site.getsitepackages(), site.getusersitepackages(), *filter(None, sys.path)])]
    yield from (
        str(path)
        for major in majors
        for folder in folders
        if (path := Path(folder, wheels[major], f"libcupti.so.{major}")).exists()
    )
    homes = [home for name in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(name))]
    yield from (
        str(path)
        for home in [*homes, "/usr/local/cuda"]
        for inside in ("extras/CUPTI/lib64", "lib64")
        if (path := Path(home, inside, "libcupti.so")).exists()
    )
    yield from (f"libcupti.so.{major}" for major in majors)


class CudaSource:
    """Checks CUDA anew for each window, as it may start at any time."""

    def __init__(self) -> None:
        # why requested CUDA events were not recorded, or not all of them; None if they were
        self.problem: str | None = None
        # why device memory is not recorded although the rest is; None if it is
        self.memory_problem: str | None = None
        self._is_asked_for = self._is_wanted = self._is_recording = False

    def find(self, sources: frozenset[str]) -> bool:
        """Check whether CUDA can be recorded by now; `CUDA_IF_USED` is no problem if nothing uses it."""
        self.problem = self.memory_problem = None
        self._is_asked_for = CUDA in sources
        self._is_wanted = not sources.isdisjoint(CUDA_SOURCES)
        if not self._is_wanted:
            return False
        answer = open_cuda()
        if answer.state is CudaState.ABSENT:
            may_come = has_driver()
            self.problem = answer.reason if self._is_asked_for and not may_come else None
        elif answer.state is not CudaState.READY:
            self.problem = answer.reason
        return answer.state is CudaState.READY

    def choose(self, sources: frozenset[str], *, with_memory: bool) -> None:
        """Choose before a window whether it records CUDA, and the device memory that CUDA calls take."""
        is_ready = self.find(sources)
        taken = other_profiler() if is_ready else None
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
            self.problem = recording_problem()
            return ()
        self.memory_problem = recording_problem() or None
        return (CUDA, MEMORY_CUDA) if parts & lib.OP_CUDA_MEMORY else (CUDA,)

    def stopped(self) -> None:
        """Note that the window has closed, and check whether it lost CUDA events."""
        if self._is_recording:
            later = recording_problem()
            self.problem = later if later and later != self.memory_problem else None
        elif self._is_wanted and self.problem is None and _is_started():
            self.problem = (
                "CUDA started during the recording, so its events are missing: begin with a warm-up step"
            )
        self._is_recording = False
