"""Device types, with torch's numbers."""

from __future__ import annotations

import enum
import functools
from typing import Any, Final

from pytest_opprof.capture.torch_ops import imported_torch


class DeviceType(enum.IntEnum):
    """Where an event ran or memory lies: all device types of torch, under torch's names."""

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    MTIA = 19
    PrivateUse1 = 20

    def __str__(self) -> str:
        return f"DeviceType.{self.name}"

    def __reduce_ex__(self, _protocol: object, /) -> tuple[object, tuple[int]]:
        # The process that unpickles it may have torch.
        return device_type, (int(self),)


def device_type(number: int) -> Any:
    """The device type with torch's number: our member, or torch's if torch is imported."""
    torch = imported_torch()
    return DeviceType(number) if torch is None else _torchs_member(torch.autograd.DeviceType, number)


@functools.cache
def _torchs_member(torchs: Any, number: int) -> Any:
    """A member of torch's enumeration that equals ours, too, because torch's own equal nothing else."""

    def equals(self: Any, other: object) -> bool:
        return isinstance(other, int | torchs) and int(self) == int(other)

    # Python asks a subclass first, so torch's members equal this one as well.
    named = {"__module__": torchs.__module__, "__eq__": equals, "__hash__": torchs.__hash__}
    # Torch's class defines this, too: without our own, it would answer before `__eq__`.
    named["__ne__"] = lambda self, other: not equals(self, other)
    # Pickle does not find the class by its name; another process may have no torch.
    named["__reduce__"] = lambda self: (device_type, (int(self),))
    return type(torchs.__name__, (torchs,), named)(number)


# Devices whose memory torch counts as the host's, and as the device's.
HOST_MEMORY: Final = frozenset({DeviceType.CPU, DeviceType.MKLDNN, DeviceType.IDEEP})
DEVICE_MEMORY: Final = frozenset({DeviceType.CUDA, DeviceType.PrivateUse1, DeviceType.HIP, DeviceType.XPU})
