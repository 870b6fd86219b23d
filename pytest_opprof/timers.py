"""Clocks for pytest-benchmark: ``pytest --benchmark-timer=pytest_opprof.timers.cuda_perf_counter``."""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from typing import Final

from pytest_opprof.capture.native import lib
from pytest_opprof.capture.native_calls import check
from pytest_opprof.capture.torch_ops import imported_torch

__all__ = ["cuda_perf_counter"]

_HOST_ALONE: Final = (
    "cuda_perf_counter: CUDA was not in use in this process, so its times are only those of the host"
)


# How often the clock was read, and how often it waited for a device.
_readings: Final = Counter(read=0, waited=0)


def cuda_perf_counter() -> float:
    """``time.perf_counter``, in seconds, after all devices that this process uses have finished their work.

    It waits for the context of CUDA's runtime on each device that has one, and for the thread's own context
    if the program made another. It neither loads nor initializes CUDA, and makes no context. On ROCm it waits
    through torch. If no device is in use, it is only ``time.perf_counter`` and says so once: at the end of
    pytest's output, or in a warning outside of pytest.

    Raises:
        CollectorError: The driver reported an error, such as that of an earlier kernel.
    """
    contexts = lib.op_cuda_synchronize() or _wait_by_torch()
    now = time.perf_counter()
    if contexts < 0:
        check(contexts)
    _readings["read"] += 1
    if contexts:
        _readings["waited"] += 1
    elif _readings["read"] == 1 and "pytest" not in sys.modules:
        warnings.warn(_HOST_ALONE, stacklevel=2)
    return now


def host_alone() -> str | None:
    """A sentence if the clock was read, but never waited for a device."""
    return _HOST_ALONE if _readings["read"] and not _readings["waited"] else None


def _wait_by_torch() -> int:
    """Wait for the devices of a torch that works without libcuda, and count them."""
    torch = imported_torch()
    if torch is None or not torch.cuda.is_initialized():
        return 0
    has_context = torch._C._cuda_hasPrimaryContext  # noqa: SLF001  # torch.cuda has no public name for it
    used = [device for device in range(torch.cuda.device_count()) if has_context(device)]
    for device in used:
        torch.cuda.synchronize(device)
    return len(used)
