"""Commands that start processes end them, also where they are told to end in other ways than by Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any, Final, NoReturn

# A job of CI that is cancelled, a terminal that is closed; Windows has no terminals to close.
_SIGNALS: Final = (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))


@contextlib.contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Put everything away as after Ctrl-C. What is ignored, as under nohup, stays ignored."""

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
