"""The NVIDIA devices of this process, and those that it will find: counts and times depend on them."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_opprof.capture.native import lib

_DRIVER: Final = "libcuda.so.1"
_RUNTIMES: Final = ("libcudart.so.13", "libcudart.so.12")
_MANAGEMENT: Final = "libnvidia-ml.so.1"  # the driver's; its calls are in nvml.h of CUDA 12.9
_VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_DRIVER_VERSION: Final = Path("/sys/module/nvidia/version")
_SUCCESS: Final = 0
_LONGEST_NAME: Final = 256
# Of CUdevice_attribute (cuda.h of CUDA 12.9): the two numbers of the compute capability.
_MAJOR, _MINOR = 75, 76


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One device."""

    name: str
    architecture: str  # the compute capability, such as ``9.0``


def gpus() -> tuple[Gpu, ...]:
    """The devices; empty if this process has not started CUDA. Starts and loads nothing."""
    driver = _loaded(_DRIVER)
    count = ctypes.c_int()
    if driver is None or driver.cuDeviceGetCount(ctypes.byref(count)) != _SUCCESS:
        return ()
    found = (_gpu(driver, index) for index in range(count.value))
    return tuple(gpu for gpu in found if gpu is not None)


def gpu_fields() -> dict[str, str]:
    """The devices' fields of the fingerprint; "" for what is unknown."""
    found = gpus()
    return {
        "gpu_arch": joined(gpu.architecture for gpu in found),
        "gpu_model": joined(gpu.name for gpu in found),
        "gpu_driver": _driver_version() if found else "",
        "cuda": _cuda_version() if found else "",
    }


def expected_architecture() -> str:
    """The compute capability that CUDA will find here, such as ``9.0``; "" if unknown.

    The driver's management library answers without starting CUDA or taking device memory. It does not know
    which devices this process will use, so there is an answer only if all are alike.
    """
    if os.environ.get(_VISIBLE, "all").strip() in {"", "-1"}:
        return ""
    found = set(_architectures())
    return found.pop() if len(found) == 1 else ""


def _architectures() -> Iterator[str]:
    """The compute capability of each device; "" if it is unknown."""
    try:
        library = ctypes.CDLL(_MANAGEMENT)
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


def joined(names: Iterable[str]) -> str:
    """Names of several devices as one field: each once, sorted."""
    return ", ".join(sorted(set(names)))


def _loaded(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name, mode=os.RTLD_NOLOAD)
    except OSError:
        return None


def _gpu(driver: ctypes.CDLL, index: int) -> Gpu | None:
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    name = ctypes.create_string_buffer(_LONGEST_NAME)
    if (
        driver.cuDeviceGet(ctypes.byref(device), index) != _SUCCESS
        or driver.cuDeviceGetName(name, _LONGEST_NAME, device) != _SUCCESS
        or driver.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, device) != _SUCCESS
        or driver.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, device) != _SUCCESS
    ):
        return None
    return Gpu(name=name.value.decode("utf-8", "replace"), architecture=f"{major.value}.{minor.value}")


def cuda_versions() -> dict[str, int]:
    """The versions of CUDA's loaded libraries, by their names in Kineto's traces; 13000 is 13.0."""
    runtime = next((version for name in _RUNTIMES if (version := _version(name, "cudaRuntimeGetVersion"))), 0)
    versions = {
        "cuda_driver_version": _version(_DRIVER, "cuDriverGetVersion"),
        "cuda_runtime_version": runtime,
        "cupti_version": lib.op_cuda_version(),
    }
    return {name: version for name, version in versions.items() if version}


def _version(library: str, function: str) -> int:
    """A library's version; 0 if it is not loaded or does not say."""
    loaded, version = _loaded(library), ctypes.c_int()
    if loaded is None or getattr(loaded, function)(ctypes.byref(version)) != _SUCCESS:
        return 0
    return version.value


def _cuda_version() -> str:
    """The newest CUDA that the driver supports, such as ``12.9``; "" if unknown."""
    version = _version(_DRIVER, "cuDriverGetVersion")
    return f"{version // 1000}.{version % 1000 // 10}" if version else ""


def _driver_version() -> str:
    try:
        return _DRIVER_VERSION.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
