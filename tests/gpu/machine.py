"""Whether there is a GPU to test on, what it is, and what a workload lacks."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import pytest

PACKAGES: Final = ("pytest-opprof", "torch", "triton", "cupy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a result depends on, for the page; an unknown field is ""."""

    gpu: str
    driver: str
    cuda: str
    cupti: str
    versions: dict[str, str]


def lacks_gpu() -> str | None:
    """Why nothing can run on a GPU here, in a sentence without its full stop; None if it can."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "there is no NVIDIA driver here (libcuda.so.1 not found)"
    count = ctypes.c_int()
    code = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if code:
        return (
            f"the NVIDIA driver does not start (cuInit gives {code}): see nvidia-smi, or CUDA_VISIBLE_DEVICES"
        )
    return None if count.value else "the NVIDIA driver has no device here"


def lacks_torch() -> str | None:
    """Why torch cannot use the GPU. Torch is the other side of each comparison."""
    if importlib.util.find_spec("torch") is None:
        return "no torch to compare with: install one that is built for CUDA"
    import torch

    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built without CUDA: install one that is built for it"
    return None if torch.cuda.is_available() else "torch.cuda.is_available() is False here"


def lacks(
    needs: Sequence[str],
    *,
    gpu: Callable[[], str | None] = lacks_gpu,
    torch: Callable[[], str | None] = lacks_torch,
) -> str | None:
    """The first thing that a workload lacks here; None if it can run."""
    absent = next((name for name in needs if importlib.util.find_spec(name) is None), None)
    return gpu() or torch() or (f"{absent} is not installed" if absent else None)


def on_a_gpu(*needs: str) -> None:
    """Skip the test without a GPU or without one of these packages."""
    reason = lacks(needs)
    if reason is not None:
        pytest.skip(reason)


def this_machine() -> Machine:
    """The machine; starts CUDA in this process."""
    from pytest_opprof.capture.cuda import library, open_cuda
    from pytest_opprof.capture.gpus import gpu_fields

    lacks_gpu()
    open_cuda()
    fields = gpu_fields()
    return Machine(
        gpu=fields["gpu_model"],
        driver=fields["gpu_driver"],
        cuda=fields["cuda"],
        cupti=library().rpartition("/")[2],  # its path is private
        versions={name: found for name in PACKAGES if (found := _version(name))},
    )


def _version(name: str) -> str:
    if name == "cupy":  # its wheels are named after their CUDA release
        names = ("cupy", "cupy-cuda12x", "cupy-cuda13x")
        return next((found for one in names if (found := _installed(one))), "")
    return _installed(name)


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
