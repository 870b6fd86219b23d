"""Bits of an event's flags, and numbers of its scope."""

from __future__ import annotations

from typing import Final

FLAG_CROSSING: Final = 0x01
FLAG_VIEW: Final = 0x02
FLAG_ASYNC: Final = 0x10
FLAG_UNFINISHED: Final = 0x20
FLAG_BACKGROUND: Final = 0x40
FLAG_CREDITED: Final = 0x80
BACKWARD_SCOPE: Final = 1  # torch's RecordScope::BACKWARD_FUNCTION: a node of autograd
USER_SCOPE: Final = 7  # torch's RecordScope::USER_SCOPE: a range that somebody named
