"""The events of any recording in Kineto's words, for what is to read them as torch does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pytest_opprof.events.attribution import launching_op
from pytest_opprof.events.forest import EventForest
from pytest_opprof.events.kineto_event import KinetoEvent, RecordedKinetoEvent
from pytest_opprof.events.recording_view import RecordingView
from pytest_opprof.kinds import EventKind

_CALLS: Final = frozenset({EventKind.RUNTIME, EventKind.DRIVER})


def kineto_events(forest: EventForest) -> tuple[list[KinetoEvent], int]:
    """What Kineto told, or would have told, of a recording's events, and when its window began.

    Returns:
        The events in Kineto's order, or in the order of their start; and nanoseconds on the events' clock.
    """
    given = forest.recording.kineto_result
    if given is not None:
        return list(given.events()), given.trace_start_ns()
    return list(recorded_events(forest)), 0


def recorded_events(forest: EventForest, *, begin_ns: int = 0) -> Iterator[RecordedKinetoEvent]:
    """The events of a recording as Kineto would have told of them, in the order of their start.

    Args:
        forest: Of the recording.
        begin_ns: When the window began, on the clock that they are to be told by.
    """
    recording = forest.recording
    for row in sorted(range(len(recording)), key=recording.start_ns.__getitem__):
        yield RecordedKinetoEvent(
            forest.event(row),
            thread=torch_thread(recording, row),
            cause=_cause(forest, row),
            call=_call(forest, row),
            begin_ns=begin_ns,
        )


def torch_thread(recording: RecordingView, row: int) -> int:
    """Torch's number of a thread; one that ran no op has none, and gets one that torch gives no thread."""
    thread = recording.threads[recording.thread[row]]
    return thread.torch_thread or -1 - thread.index


def _call(forest: EventForest, row: int) -> int:
    """The number of the runtime's or driver's call that launched work of a device, 0 for none known."""
    recording = forest.recording
    launcher = recording.launcher[row]
    return forest.event(launcher).id if launcher >= 0 and recording.kind[launcher] in _CALLS else 0


def _cause(forest: EventForest, row: int) -> int:
    """The number of the op that caused an event of a device or of its runtime, 0 for none."""
    recording = forest.recording
    kind = EventKind(recording.kind[row])
    if kind in _CALLS:
        op = recording.parent[row]
    elif kind.is_on_device and kind is not EventKind.DEVICE_RANGE:
        op = launching_op(recording, row)
    else:
        return 0
    return forest.event(op).id if op >= 0 else 0
