"""How long to wait for an API that is busy, and when to give up."""

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
    """How often to ask again, and how long to wait in all for one request.

    Attributes:
        tries: How often a request is made at most.
        longest_s: Seconds to wait at most, all pauses of a request together.
        now: Seconds since 1970, as the API's limits count.
        draw: A random number from 0 to 1, so that two jobs do not ask again at the same moment.
    """

    tries: int = 6
    longest_s: float = 300.0
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time
    draw: Callable[[], float] = random.random

    def pause(self, tried: int, headers: Mapping[str, str]) -> float:
        """Seconds to wait before the next try: what the API asks for, else twice as long each time.

        Args:
            tried: How often the request was made already; 1 at least.
            headers: Of the answer, names in lower case; empty where none came.
        """
        asked = _seconds(headers.get("retry-after"))
        if asked is None and headers.get("x-ratelimit-remaining") == "0":
            reset = _seconds(headers.get("x-ratelimit-reset"))
            asked = None if reset is None else max(reset - self.now(), 0.0)
        if asked is not None:
            # A second more: the API's clock is not ours.
            return asked + 1.0 + self.draw()
        return float(min(_FIRST_S * 2 ** (tried - 1), _LONGEST_S) * (0.5 + self.draw() / 2))

    def until(self, seconds: float) -> str:
        """When a pause would end, as a sentence says it."""
        try:
            return f"{datetime.fromtimestamp(self.now() + seconds, tz=UTC):%Y-%m-%d %H:%M} UTC"
        except (ValueError, OverflowError, OSError):
            return "the end of time"  # a number of seconds that no calendar has


def is_busy(status: int, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether the same request may be answered later: a limit on requests, or a server in trouble.

    GitHub says 403 for a missing permission and for its limits; only the latter say how long to wait, or that
    they are secondary ones.
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
