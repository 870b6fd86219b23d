"""Windows of the real collector, and queries on recordings."""

from __future__ import annotations

import gc
import sys
from types import TracebackType
from typing import ClassVar, Self

from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.recording import Recording
from pytest_opprof.kinds import FLAG_ASYNC, FLAG_UNFINISHED

RANGES = frozenset({"ranges"})
RANGES_AND_OPS = frozenset({"ranges", "ops"})


class Window:
    """A window that is open while the block runs.

    Attributes:
        recording: The recording, once the block has ended.
    """

    recording: Recording

    _modules_left_alone: ClassVar[int] = 0

    def __init__(
        self,
        *,
        sources: frozenset[str] = RANGES,
        record_shapes: bool = False,
        profile_memory: bool = False,
        begins_step: bool = False,
    ) -> None:
        self._sources = sources
        self._profile_memory = profile_memory
        self._record_shapes = record_shapes
        self._begins_step = begins_step

    def __enter__(self) -> Self:
        collector = Collector.instance()
        collector.open(sources=self._sources)
        self._leave_modules_alone()
        collector.start(record_shapes=self._record_shapes, profile_memory=self._profile_memory)
        if self._begins_step:
            collector.step_begin(0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.recording = Collector.instance().stop()

    @classmethod
    def _leave_modules_alone(cls) -> None:
        """Exempt loaded modules from each window's garbage collection, or torch and pandas cost 0.3 s."""
        if cls._modules_left_alone != len(sys.modules):
            cls._modules_left_alone = len(sys.modules)
            gc.freeze()


def names(recording: Recording) -> list[str]:
    """Names by thread, in the order of start."""
    return [recording.name(event) for event in range(len(recording))]


def callers(recording: Recording) -> list[str | None]:
    """For each event, the name of its caller."""
    return [None if parent < 0 else recording.name(parent) for parent in recording.parent]


def asynchronous(recording: Recording) -> list[bool]:
    """For each event, whether it ended out of order or on another thread."""
    return [bool(flags & FLAG_ASYNC) for flags in recording.flags]


def unfinished(recording: Recording) -> list[bool]:
    """For each event, whether it was open when the window closed."""
    return [bool(flags & FLAG_UNFINISHED) for flags in recording.flags]


def ops_window(*, record_shapes: bool = False, begins_step: bool = False) -> Window:
    """A window that records torch ops, too."""
    return Window(sources=RANGES_AND_OPS, record_shapes=record_shapes, begins_step=begins_step)


def events_of(recording: Recording, name: str) -> list[int]:
    """The indices of the events with a name."""
    return [event for event in range(len(recording)) if recording.name(event) == name]
