"""A process's count of training steps, shared by all who count them."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar


class KinetoStepTracker:
    """Counts each requester's steps; the process's step is the highest count.

    A profiler's ``step()`` and an optimizer's hook may both mean the same step of training, so each requester
    has its own count, and only the highest one advances the process.
    """

    _current_step: ClassVar[int] = 0
    _step_dict: ClassVar[dict[str, int]] = defaultdict(int)

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Start a requester's count at the process's step."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Forget a requester; return whether it was known."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Count a requester's step; return the process's step, and warn if it grew by more than one."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        new_step = max(cls._step_dict.values())
        if new_step > cls._current_step:
            if new_step - cls._current_step > 1:
                warnings.warn(
                    "Profiler step count has increased more than 1 - "
                    f"current_step = {cls._current_step} step dict =  {cls._step_dict}",
                    stacklevel=2,
                )
            cls._current_step = new_step
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The process's step."""
        return cls._current_step


@contextmanager
def own_steps() -> Iterator[None]:
    """Count from 0 within the block, and restore the counts after it, so that tests are independent."""
    step, counts = KinetoStepTracker._current_step, KinetoStepTracker._step_dict  # noqa: SLF001  # of this module
    KinetoStepTracker._current_step, KinetoStepTracker._step_dict = 0, defaultdict(int)  # noqa: SLF001
    try:
        yield
    finally:
        KinetoStepTracker._current_step, KinetoStepTracker._step_dict = step, counts  # noqa: SLF001
