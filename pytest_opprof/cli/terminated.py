"""Let commands that start processes end them after SIGTERM and SIGHUP too, not only after Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any, Final, NoReturn

# Sent when a CI job is cancelled and when a terminal is closed. Windows has no SIGHUP.
_SIGNALS: Final = (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))


@contextlib.contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Clean up after these signals as after Ctrl-C. Ignored signals, as under nohup, stay ignored."""

    def interrupt(*_: Any) -> NoReturn:
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    heard = [number for number in _SIGNALS if before[number] is not signal.SIG_IGN]
    for number in heard:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, before[number])
