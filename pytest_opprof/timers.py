"""Clocks for pytest-benchmark: ``pytest --benchmark-timer=pytest_opprof.timers.cuda_perf_counter``."""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass
from typing import Final

from pytest_opprof.capture.native import lib
from pytest_opprof.capture.native_calls import check
from pytest_opprof.capture.torch_ops import imported_torch

__all__ = ["cuda_perf_counter"]

_HOST_ALONE: Final = (
    "cuda_perf_counter: CUDA was not in use in this process, so its times are only those of the host"
)


@dataclass(slots=True)
class _Readings:
    """How often the clock was read, and how often there was a device to wait for."""

    all: int = 0
    waited: int = 0


_readings: Final = _Readings()


def cuda_perf_counter() -> float:
    """``time.perf_counter`` when all devices that this process uses have done what they were given.

    It waits for the contexts that CUDA's runtime works in, of each device on which there is one, and for the
    thread's own where a program made another. CUDA is neither loaded nor initialized for it, and no context
    is made. On ROCm it waits by torch. Where nothing is in use it is ``time.perf_counter``, which is said
    once: at the end of pytest's output, or in a warning where pytest does not run.

    Returns:
        Seconds.

    Raises:
        CollectorError: The driver gave an error, such as that of an earlier kernel.
    """
    contexts = lib.op_cuda_synchronize() or _wait_by_torch()
    now = time.perf_counter()
    if contexts < 0:
        check(contexts)
    _readings.all += 1
    if contexts:
        _readings.waited += 1
    elif _readings.all == 1 and "pytest" not in sys.modules:
        warnings.warn(_HOST_ALONE, stacklevel=2)
    return now


def host_alone() -> str | None:
    """A sentence where the clock was read, and there never was a device to wait for."""
    return _HOST_ALONE if _readings.all and not _readings.waited else None


def _wait_by_torch() -> int:
    """Wait for the devices of a torch that works without libcuda; how many there are."""
    torch = imported_torch()
    if torch is None or not torch.cuda.is_initialized():
        return 0
    has_context = torch._C._cuda_hasPrimaryContext  # noqa: SLF001  # torch.cuda has no public name for it
    used = [device for device in range(torch.cuda.device_count()) if has_context(device)]
    for device in used:
        torch.cuda.synchronize(device)
    return len(used)
