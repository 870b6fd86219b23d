"""Where a device's time went: computing, communicating, copying, or idle, and for what reason."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_opprof.analysis.collectives import is_collective
from pytest_opprof.analysis.intervals import Cover, Interval, gaps, union
from pytest_opprof.capture.names import name_text
from pytest_opprof.kinds import EventKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_opprof.capture.recording import Recording

_COPIES: Final = frozenset({EventKind.MEMCPY, EventKind.MEMSET})
_DISPATCH: Final = frozenset({EventKind.TORCH, EventKind.RUNTIME, EventKind.DRIVER})
_WAITS: Final = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize")
_WAIT_NAMES: Final = frozenset({*_WAITS, *(name.replace("cuda", "hip", 1) for name in _WAITS)})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTime:
    """A stretch of one device's time, nanoseconds. All but the first two and `overlap_ns` add up to it.

    Attributes:
        span_ns: The whole stretch.
        communication_ns: Collectives ran.
        overlap_ns: Collectives and computing kernels ran at once.
        compute_ns: Computing kernels ran.
        exposed_communication_ns: Collectives ran and no computing kernel: it waited for a collective.
        copy_ns: Nothing ran but copies and fills.
        launch_bound_ns: Nothing ran; the next work was not launched, and its thread was inside ops and calls.
        host_ns: The same, but the thread was in none: Python code, data loading.
        synchronize_ns: The same, but the thread waited for the device.
        queued_ns: Nothing ran; the next work was launched and had not begun.
        unknown_ns: Nothing ran, and what came next, or who launched it, is not on record.
    """

    span_ns: int = 0
    communication_ns: int = 0
    overlap_ns: int = 0
    compute_ns: int = 0
    exposed_communication_ns: int = 0
    copy_ns: int = 0
    launch_bound_ns: int = 0
    host_ns: int = 0
    synchronize_ns: int = 0
    queued_ns: int = 0
    unknown_ns: int = 0

    @property
    def idle_ns(self) -> int:
        """Nothing ran."""
        return self.launch_bound_ns + self.host_ns + self.synchronize_ns + self.queued_ns + self.unknown_ns


class _Idle(NamedTuple):
    launch_bound: int = 0
    host: int = 0
    synchronize: int = 0
    queued: int = 0
    unknown: int = 0


class _Work(NamedTuple):
    start: int
    end: int
    launcher: int


@dataclass(frozen=True, slots=True)
class _Device:
    """One device's work; of every kind in the order of time."""

    compute: list[Interval]
    communication: list[Interval]
    copies: list[Interval]
    work: list[_Work]
    starts: list[int]


class DeviceTimes:
    """The devices of a recording, asked stretch by stretch.

    Args:
        recording: With kernels, their launches, and what the launching threads did.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._devices = _devices(recording)
        self._host = _Host(recording)

    @property
    def devices(self) -> list[int]:
        """Torch's numbers of the devices that did something."""
        return sorted(self._devices)

    def within(self, device: int, start_ns: int, end_ns: int) -> DeviceTime:
        """Where a device's time went from one moment to another, from the trace's start."""
        of = self._devices[device]
        compute, communication, copies = (
            _clipped(some, start_ns, end_ns) for some in (of.compute, of.communication, of.copies)
        )
        computing, communicating = _length(compute), _length(communication)
        either = _length(union([*_copied(compute), *_copied(communication)]))
        busy = union([*_copied(compute), *_copied(communication), *_copied(copies)])
        idle = _Idle(), *(self._idle(of, gap) for gap in gaps(_copied(busy), start_ns, end_ns))
        launch_bound, host, synchronize, queued, unknown = map(sum, zip(*idle, strict=True))
        return DeviceTime(
            span_ns=end_ns - start_ns,
            communication_ns=communicating,
            overlap_ns=computing + communicating - either,
            compute_ns=computing,
            exposed_communication_ns=either - computing,
            copy_ns=_length(busy) - either,
            launch_bound_ns=launch_bound,
            host_ns=host,
            synchronize_ns=synchronize,
            queued_ns=queued,
            unknown_ns=unknown,
        )

    def _idle(self, of: _Device, gap: Interval) -> _Idle:
        following = bisect_right(of.starts, gap.start)
        launcher = of.work[following].launcher if following < len(of.work) else -1
        if launcher < 0:
            return _Idle(unknown=gap.end - gap.start)
        launched = self._recording.start_ns[launcher] + max(self._recording.duration_ns[launcher], 0)
        launched = min(max(launched, gap.start), gap.end)
        inside, waiting = (
            cover.overlap(gap.start, launched)
            for cover in self._host.covers(self._recording.thread[launcher])
        )
        return _Idle(
            launch_bound=inside - waiting,
            host=launched - gap.start - inside,
            synchronize=waiting,
            queued=gap.end - launched,
        )


def device_times(recording: Recording) -> list[tuple[int, list[DeviceTime]]]:
    """Each device's time in each step; of the whole trace, where it has no steps."""
    times = DeviceTimes(recording)
    start = recording.trace_start_ns
    windows = [(step.start_ns - start, step.end_ns - start) for step in recording.steps] or [
        (0, recording.trace_end_ns)
    ]
    return [(device, [times.within(device, *window) for window in windows]) for device in times.devices]


def peak_memory(recording: Recording) -> dict[tuple[int, int], tuple[int, int]]:
    """The most bytes that each allocator gave out, and held, by torch's type and number of the device."""
    peaks: dict[tuple[int, int], tuple[int, int]] = {}
    for event, kind in enumerate(bytes(recording.kind)):
        change = recording.memory(event) if kind == EventKind.MEMORY else None
        if change is not None:
            place = change.device_type, change.device_index
            allocated, reserved = peaks.get(place, (0, 0))
            peaks[place] = max(allocated, change.total_allocated), max(reserved, change.total_reserved)
    return peaks


class _Host:
    """What the threads that launch did: inside ops and calls, and of that, inside calls that wait."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._covers: dict[int, tuple[Cover, Cover]] = {}
        self._waits = _ids(recording, EventKind.RUNTIME, _WAIT_NAMES.__contains__)

    def covers(self, thread: int) -> tuple[Cover, Cover]:
        """When a thread was inside of ops and calls, and when inside of a call that waits."""
        if thread not in self._covers:
            self._covers[thread] = self._of_thread(thread)
        return self._covers[thread]

    def _of_thread(self, thread: int) -> tuple[Cover, Cover]:
        of = self._recording
        rows = slice(bisect_right(of.thread, thread - 1), bisect_right(of.thread, thread))
        inside: list[Interval] = []
        waiting: list[Interval] = []
        until = -1
        # A thread's events stand together, in the order of their start: those inside of others are passed.
        for start, duration, kind, name in zip(
            of.start_ns[rows], of.duration_ns[rows], of.kind[rows], of.name_id[rows], strict=True
        ):
            if kind in _DISPATCH and duration > 0:
                if start >= until:
                    until = start + duration
                    inside.append(Interval(start, until))
                elif start + duration > until:
                    inside[-1].end = until = start + duration
                if name in self._waits:
                    waiting.append(Interval(start, start + duration))
        return Cover(inside), Cover(waiting)


def _ids(recording: Recording, kind: EventKind, keeps: Callable[[str], bool]) -> frozenset[int]:
    """The numbers of the names that events of a kind have, and that are to be kept."""
    ids = {name for name, of in zip(recording.name_id, recording.kind, strict=True) if of == kind}
    return frozenset(name for name in ids if keeps(name_text(name)))


def _devices(recording: Recording) -> dict[int, _Device]:
    found: defaultdict[int, _Device] = defaultdict(lambda: _Device([], [], [], [], []))
    communicating = _ids(recording, EventKind.KERNEL, is_collective)
    for event, kind in enumerate(bytes(recording.kind)):
        if kind < EventKind.KERNEL or kind > EventKind.MEMSET or recording.duration_ns[event] < 0:
            continue
        start = recording.start_ns[event]
        end = start + recording.duration_ns[event]
        of = found[recording.threads[recording.thread[event]].device_index]
        if kind in _COPIES:
            of.copies.append(Interval(start, end))
        else:
            is_joint = recording.name_id[event] in communicating
            (of.communication if is_joint else of.compute).append(Interval(start, end))
        of.work.append(_Work(start, end, recording.launcher[event]))
    return {device: _in_order(of) for device, of in found.items()}


def _in_order(of: _Device) -> _Device:
    work = sorted(of.work)
    return _Device(
        union(of.compute), union(of.communication), union(of.copies), work, [one.start for one in work]
    )


def _clipped(stretches: Sequence[Interval], start: int, end: int) -> list[Interval]:
    return [
        Interval(max(one.start, start), min(one.end, end))
        for one in stretches
        if one.start < end and one.end > start
    ]


def _copied(stretches: Iterable[Interval]) -> list[Interval]:
    """Stretches that `union` may lengthen."""
    return [Interval(one.start, one.end) for one in stretches]


def _length(stretches: Iterable[Interval]) -> int:
    return sum(one.end - one.start for one in stretches)
