"""The architecture of this machine's NVIDIA devices, asked of the driver's management library.

That neither starts CUDA nor takes memory of a device, so that it can be known before the first test runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from typing import Final

_LIBRARY: Final = "libnvidia-ml.so.1"  # of the driver; nvml.h of CUDA 12.9 has its calls
_SUCCESS: Final = 0
_VISIBLE: Final = "CUDA_VISIBLE_DEVICES"


def expected_architecture() -> str:
    """The compute capability that CUDA will find here, ``9.0``; "" where nobody can say.

    Which of the devices a process will use is known only then, so it is told where all are alike.
    """
    if os.environ.get(_VISIBLE, "all").strip() in {"", "-1"}:
        return ""
    found = set(_architectures())
    return found.pop() if len(found) == 1 else ""


def _architectures() -> Iterator[str]:
    """Of each device; "" for one that does not tell."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return
    with contextlib.suppress(AttributeError):  # a driver older than these calls
        if library.nvmlInit_v2() == _SUCCESS:
            try:
                yield from _told(library)
            finally:
                library.nvmlShutdown()


def _told(library: ctypes.CDLL) -> Iterator[str]:
    count = ctypes.c_uint()
    if library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != _SUCCESS:
        return
    for index in range(count.value):
        device, major, minor = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
        is_told = (
            library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) == _SUCCESS
            and library.nvmlDeviceGetCudaComputeCapability(device, ctypes.byref(major), ctypes.byref(minor))
            == _SUCCESS
        )
        yield f"{major.value}.{minor.value}" if is_told else ""
