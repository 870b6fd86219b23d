"""Read the older profiler's arguments for devices."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pytest_opprof.capture.torch_ops import imported_torch
from pytest_opprof.profiler.activities import ProfilerActivity

_DEVICES: Final = {
    "cuda": ProfilerActivity.CUDA,
    "xpu": ProfilerActivity.XPU,
    "mtia": ProfilerActivity.MTIA,
    "hpu": ProfilerActivity.HPU,
}


def use_device_of(use_device: str | None, *, use_cuda: bool) -> str | None:
    """The device to profile; None, with a warning, if it is unknown or not available.

    Args:
        use_cuda: The deprecated form of ``use_device="cuda"``.
    """
    if use_cuda:
        warnings.warn(
            "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead.",
            FutureWarning,
            stacklevel=3,
        )
        use_device = "cuda"
    if use_device is None:
        return None
    torch = imported_torch()
    renamed = torch._C._get_privateuse1_backend_name() if torch is not None else None  # noqa: SLF001  # torch's own way
    if use_device not in {*_DEVICES, renamed} - {"privateuseone"}:
        warnings.warn(f"The {use_device} is not a valid device option.", stacklevel=3)
        return None
    module = getattr(torch, use_device, None)
    if module is None or not module.is_available():
        warnings.warn(
            f"{use_device.upper()} is not available, disabling {use_device.upper()} profiling", stacklevel=3
        )
        return None
    return use_device


def device_of(
    use_device: str | None, *, use_cpu: bool, filters: Mapping[Any, Iterable[str]] | None
) -> list[object]:
    """The ``activities`` argument for the older profiler's arguments.

    Args:
        filters: Names of activity types by activity.

    Raises:
        AssertionError: No activity is left. Torch raises the same.
    """
    wanted = [ProfilerActivity.CPU] if use_cpu else []
    if use_device is not None:
        wanted.append(_DEVICES.get(use_device, ProfilerActivity.PrivateUse1))
    if not wanted:
        raise AssertionError("No activities specified for the profiler")
    types = {getattr(activity, "name", activity): names for activity, names in (filters or {}).items()}
    return [{activity: types[activity.name]} if activity.name in types else activity for activity in wanted]
