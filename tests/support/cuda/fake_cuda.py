"""The fake CUDA of native/tests/fake_cupti, loaded into this process as CUDA would be.

A program imports this first and calls it as it would call CUDA. The plugin then records its kernels, without
knowing that they are fake. `fake_cupti.h` explains each field and control.

    cuda = fake_cuda.load()
    cuda.launch("gemm", stream=7, ns=20_000)
    cuda.synchronize()
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIBRARIES = "OPPROF_TEST_FAKE_CUDA"  # the folder of the libraries; the fixture sets it

HTOD, DTOH, DTOD, PTOP = 1, 2, 8, 10  # CUpti_ActivityMemcpyKind
KINDS = {
    "launch": 1,
    "graph": 2,
    "memcpy": 3,
    "peer": 4,
    "memset": 5,
    "sync_device": 6,
    "sync_stream": 7,
    "sync_event": 8,
    "wait_event": 9,
    "query": 10,
    "call": 11,
    "malloc": 12,
    "free": 13,
    "overhead": 14,
    "record": 15,
    "capture": 16,
    "end_capture": 17,
}
APIS = {"runtime": 0, "driver": 1, "nested": 2, "nested_own": 3, "none": 4}
FLAGS = {"late": 1, "endless": 2, "untimed": 4, "backward": 8, "lost": 16, "non_blocking": 32}
NO_GPU = {"12": 1, "13": 2, "13.5": 3}
RECORD_KINDS = 64  # FAKE_KINDS

_u32, _u64 = ctypes.c_uint32, ctypes.c_uint64


class _Activity(ctypes.Structure):
    _fields_ = (
        *((name, _u32) for name in ("kind", "api", "flags", "cbid", "result", "device", "context", "stream")),
        ("name", ctypes.c_char_p),
        *((name, _u64) for name in ("ns", "delay_ns", "bytes", "address")),
        *((name, _u32) for name in ("copy_kind", "peer", "nodes", "graph")),
        ("grid", _u32 * 3),
        ("block", _u32 * 3),
        *((name, _u32) for name in ("registers", "static_shared", "dynamic_shared", "event")),
        *((name, _u64) for name in ("api_start", "api_end", "start", "end")),
    )


def activity(
    kind: str, *, name: str | None = None, api: str = "runtime", flags: str = "", **fields: Any
) -> _Activity:
    """Arguments of `fake_run`, for a program that runs it often."""
    made = _Activity(kind=KINDS[kind], api=APIS[api], name=name.encode() if name else None)
    for flag in filter(None, flags.split(",")):
        made.flags |= FLAGS[flag]
    for field, value in fields.items():
        setattr(made, field, tuple(value) if field in {"grid", "block"} else value)
    return made


class Totals(ctypes.Structure):
    """Totals since the last reset, from `fake_totals`."""

    appended: ctypes.Array[ctypes.c_uint64]
    dropped: ctypes.Array[ctypes.c_uint64]
    untimed: int
    pending: int
    requested: int
    completed: int
    held: int
    dirty: int
    flushes: int
    _fields_ = (
        ("appended", _u64 * RECORD_KINDS),
        ("dropped", _u64 * RECORD_KINDS),
        *(
            (name, _u64)
            for name in ("untimed", "pending", "requested", "completed", "held", "dirty", "flushes")
        ),
    )


_BEGIN = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
_CALL = ctypes.CFUNCTYPE(None)


class _Hooks(ctypes.Structure):
    _fields_ = (("begin", _BEGIN), ("end", _CALL), ("step", _CALL))


class FakeCuda:
    """The libraries of one major version of CUDA, in this process."""

    def __init__(self, folder: Path, *, major: int) -> None:
        self.driver = ctypes.CDLL(str(folder / "libcuda.so.1"))
        self.cupti = ctypes.CDLL(str(folder / f"cupti-{major}" / f"libcupti.so.{major}"))
        self.cupti.fake_run.restype = _u32
        self.cupti.fake_calls.restype = _u64
        self.cupti.fake_now.restype = _u64
        self.driver.fake_cuda_calls.restype = _u64

    # ---- activities ----

    def run(
        self, kind: str, *, name: str | None = None, api: str = "runtime", flags: str = "", **fields: Any
    ) -> int:
        """Run one activity on this thread; return its correlation id."""
        made = activity(kind, name=name, api=api, flags=flags, **fields)
        return int(self.cupti.fake_run(ctypes.byref(made)))

    def launch(self, name: str = "fake_kernel", **fields: Any) -> int:
        """Run a kernel."""
        return self.run("launch", name=name, **fields)

    def graph(self, name: str, *, nodes: int, **fields: Any) -> int:
        """Run a graph of N kernels."""
        return self.run("graph", name=name, nodes=nodes, **fields)

    def memcpy(self, copy_kind: int, nbytes: int, **fields: Any) -> int:
        """Run a copy."""
        return self.run("memcpy", copy_kind=copy_kind, bytes=nbytes, **fields)

    def memset(self, nbytes: int, **fields: Any) -> int:
        """Run a memset."""
        return self.run("memset", bytes=nbytes, **fields)

    def synchronize(self, **fields: Any) -> int:
        """Run cudaDeviceSynchronize."""
        return self.run("sync_device", **fields)

    def script(
        self,
        text: str,
        *,
        begin: Callable[[str], None] = lambda _: None,
        end: Callable[[], None] = lambda: None,
        step: Callable[[], None] = lambda: None,
    ) -> None:
        """Replay a script; these functions make ranges and steps, on the script's threads."""
        hooks = _Hooks(_BEGIN(lambda name: begin(name.decode())), _CALL(end), _CALL(step))
        bad = self.cupti.fake_script(text.encode(), ctypes.byref(hooks))
        if bad:
            message = f"line {bad} makes no sense: {text.splitlines()[bad - 1]}"
            raise ValueError(message)

    # ---- controls ----

    def fail(self, symbol: str, code: int, *, nth: int = 0) -> None:
        """Let the nth call from now fail; 0 means every call."""
        self.cupti.fake_fail(symbol.encode(), code, nth)

    def without_gpu(self, library: str) -> None:
        """Answer as CUPTI of this version ("12", "13", "13.5") does without a driver."""
        self.cupti.fake_mode(NO_GPU[library])

    def other_subscriber(self, name: str | None) -> None:
        """Let another client subscribe under this name; None unsubscribes it."""
        self.cupti.fake_other_subscriber(name.encode() if name else None)

    def control(self, name: str, value: int) -> None:
        """Call fake_worker, _shuffle, _late, _drop, _waiting, _version or _other_client, by suffix."""
        wide = name in {"shuffle", "drop"}
        getattr(self.cupti, f"fake_{name}")(_u64(value) if wide else value)

    def use_device(self, device: int = 0) -> None:
        """Initialize CUDA and make this device's context current, as a program's first call does."""
        self.driver.fake_cuda_use(device)

    def attribute(self, number: int, value: int) -> None:
        """Set a CUdevice_attribute of all devices."""
        self.driver.fake_cuda_attribute(number, value)

    # ---- answers ----

    def totals(self) -> Totals:
        """The totals so far."""
        totals = Totals()
        self.cupti.fake_count(ctypes.byref(totals))
        return totals

    def calls(self, symbol: str) -> int:
        """How often CUPTI's or the driver's function was called."""
        library, count = (
            (self.cupti, "fake_calls") if symbol.startswith("cupti") else (self.driver, "fake_cuda_calls")
        )
        return int(getattr(library, count)(symbol.encode()))

    def is_enabled(self, kind: int) -> bool:
        """Whether this CUpti_ActivityKind is on."""
        return bool(self.cupti.fake_is_enabled(kind))

    def now(self) -> int:
        """The current time of the records' clock."""
        return int(self.cupti.fake_now())

    def reset(self) -> None:
        """Restore the state after loading."""
        self.cupti.fake_reset()
        self.driver.fake_cuda_reset()


def load(*, major: int = 12, device: int | None = 0) -> FakeCuda:
    """The fake CUDA, initialized for a device unless that is None."""
    cuda = FakeCuda(Path(os.environ[LIBRARIES]), major=major)
    if device is not None:
        cuda.use_device(device)
    return cuda
