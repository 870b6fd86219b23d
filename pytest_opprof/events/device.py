"""Device types, with torch's numbers."""

from __future__ import annotations

import enum
from typing import Final


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


# Devices whose memory torch counts as the host's, and as the device's.
HOST_MEMORY: Final = frozenset({DeviceType.CPU, DeviceType.MKLDNN, DeviceType.IDEEP})
DEVICE_MEMORY: Final = frozenset({DeviceType.CUDA, DeviceType.PrivateUse1, DeviceType.HIP, DeviceType.XPU})
