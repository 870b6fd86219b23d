"""How long to wait for a busy API, and when to give up."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

_FIRST_S = 1.0
_LONGEST_S = 60.0
_TOO_MANY = 429
_FORBIDDEN = 403
_SERVER = 500
_NOT_IMPLEMENTED = 501


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often to retry a request, and how long to wait in total."""

    tries: int = 6  # the most attempts, including the first
    longest_s: float = 300.0  # the most seconds that all pauses of a request may take together
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time  # seconds since 1970, as in the API's rate limits
    # A random number from 0 to 1, so that two jobs do not retry at the same moment.
    draw: Callable[[], float] = random.random

    def pause(self, tried: int, headers: Mapping[str, str]) -> float:
        """Seconds to wait before the next try: as the API asks, else twice as long each time."""
        asked = _seconds(headers.get("retry-after"))
        if asked is None and headers.get("x-ratelimit-remaining") == "0":
            reset = _seconds(headers.get("x-ratelimit-reset"))
            asked = None if reset is None else max(reset - self.now(), 0.0)
        if asked is not None:
            # One second more, because the API's clock may differ from ours.
            return asked + 1.0 + self.draw()
        return float(min(_FIRST_S * 2 ** (tried - 1), _LONGEST_S) * (0.5 + self.draw() / 2))

    def until(self, seconds: float) -> str:
        """When a pause would end, for a message."""
        try:
            return f"{datetime.fromtimestamp(self.now() + seconds, tz=UTC):%Y-%m-%d %H:%M} UTC"
        except (ValueError, OverflowError, OSError):
            return "the end of time"  # the date is out of range


def is_busy(status: int, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether the same request may succeed later: the API is rate limited, or its server has trouble.

    GitHub answers 403 for a missing permission and for its rate limits. Only a rate limit says how long to
    wait, or that it is a secondary one.
    """
    if status == _FORBIDDEN:
        limited = headers.get("x-ratelimit-remaining") == "0" or "retry-after" in headers
        return limited or b"secondary rate limit" in body.lower()
    return status == _TOO_MANY or (status >= _SERVER and status != _NOT_IMPLEMENTED)


def _seconds(text: str | None) -> float | None:
    try:
        seconds = float(text) if text is not None else None
    except ValueError:
        return None
    return seconds if seconds is not None and math.isfinite(seconds) and seconds >= 0 else None
