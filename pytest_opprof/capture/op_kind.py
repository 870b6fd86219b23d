"""Where an event comes from, and what is said of it by a bit or a number."""

from __future__ import annotations

import enum
from typing import Final

FLAG_CROSSING: Final = 0x01
FLAG_VIEW: Final = 0x02
FLAG_ASYNC: Final = 0x10
FLAG_UNFINISHED: Final = 0x20
FLAG_BACKGROUND: Final = 0x40
FLAG_CREDITED: Final = 0x80
USER_SCOPE: Final = 7  # torch's RecordScope::USER_SCOPE: a range that somebody named


class OpKind(enum.IntEnum):
    """Where an event comes from."""

    RANGE = 1
    TORCH = 2
    ITT = 3
    NVTX = 4
    PYTHON_CALL = 5
    C_CALL = 6
    MARK = 7
    MEMORY = 8
    RUNTIME = 9
    DRIVER = 10
    KERNEL = 11
    MEMCPY = 12
    MEMSET = 13
    SYNC = 14
    DEVICE_RANGE = 15

    @property
    def is_on_device(self) -> bool:
        """It ran on a device and not on the host."""
        return self >= OpKind.KERNEL
