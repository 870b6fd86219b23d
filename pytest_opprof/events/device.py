"""Devices, numbered as torch numbers them."""

from __future__ import annotations

import enum


class DeviceType(enum.IntEnum):
    """Where an event ran."""

    CPU = 0
    CUDA = 1
    XPU = 12
    HPU = 15
    MTIA = 19
    PrivateUse1 = 20
