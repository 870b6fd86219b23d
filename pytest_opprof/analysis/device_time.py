"""Where a device's time went: computing, communicating, copying, or idle, and for what reason."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from pytest_opprof.analysis.collectives import is_collective
from pytest_opprof.analysis.intervals import Cover, Interval, gaps, union
from pytest_opprof.capture.names import name_text
from pytest_opprof.capture.recording import Recording
from pytest_opprof.kinds import EventKind

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
    """One device: what it did at any moment, and its work in the order of time."""

    compute: Cover
    communication: Cover
    either: Cover
    busy: Cover
    idle: list[Interval]
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
        computing, communicating, either, busy = (
            cover.overlap(start_ns, end_ns) for cover in (of.compute, of.communication, of.either, of.busy)
        )
        first = bisect_right(of.idle, start_ns, key=_end)
        after = itertools.islice(of.idle, first, None)
        within = itertools.takewhile(lambda gap: gap.start < end_ns, after)
        idle = _Idle(), *(self._idle(of, max(gap.start, start_ns), min(gap.end, end_ns)) for gap in within)
        launch_bound, host, synchronize, queued, unknown = map(sum, zip(*idle, strict=True))
        return DeviceTime(
            span_ns=end_ns - start_ns,
            communication_ns=communicating,
            overlap_ns=computing + communicating - either,
            compute_ns=computing,
            exposed_communication_ns=either - computing,
            copy_ns=busy - either,
            launch_bound_ns=launch_bound,
            host_ns=host,
            synchronize_ns=synchronize,
            queued_ns=queued,
            unknown_ns=unknown,
        )

    def _idle(self, of: _Device, start: int, end: int) -> _Idle:
        following = bisect_right(of.starts, start)
        launcher = of.work[following].launcher if following < len(of.work) else -1
        if launcher < 0:
            return _Idle(unknown=end - start)
        launched = self._recording.start_ns[launcher] + max(self._recording.duration_ns[launcher], 0)
        launched = min(max(launched, start), end)
        inside = waiting = 0
        if launched > start:
            dispatching, synchronizing = self._host.covers(self._recording.thread[launcher])
            inside = dispatching.overlap(start, launched)
            waiting = synchronizing.overlap(start, launched)
        return _Idle(inside - waiting, launched - start - inside, waiting, end - launched)


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
    work: defaultdict[int, list[_Work]] = defaultdict(list)
    stretches: defaultdict[tuple[int, str], list[Interval]] = defaultdict(list)
    communicating = _ids(recording, EventKind.KERNEL, is_collective)
    devices = [thread.device_index for thread in recording.threads]
    for event, kind in enumerate(bytes(recording.kind)):
        if kind < EventKind.KERNEL or kind > EventKind.MEMSET or recording.duration_ns[event] < 0:
            continue
        start = recording.start_ns[event]
        end = start + recording.duration_ns[event]
        device = devices[recording.thread[event]]
        does = "copy" if kind in _COPIES else "compute"
        if does == "compute" and recording.name_id[event] in communicating:
            does = "communicate"
        stretches[device, does].append(Interval(start, end))
        work[device].append(_Work(start, end, recording.launcher[event]))
    return {
        device: _device(
            sorted(some),
            *(stretches[device, does] for does in ("compute", "communicate", "copy")),
            until=recording.trace_end_ns,
        )
        for device, some in work.items()
    }


def _device(
    work: list[_Work],
    compute: list[Interval],
    communication: list[Interval],
    copies: list[Interval],
    *,
    until: int,
) -> _Device:
    either = union([*compute, *communication])
    computing, communicating = Cover(union(compute)), Cover(union(communication))
    running = Cover(either)
    busy = union([*either, *copies])
    return _Device(
        compute=computing,
        communication=communicating,
        either=running,
        busy=Cover(busy),
        idle=gaps(busy, min(work[0].start, 0), max(until, busy[-1].end)),
        work=work,
        starts=[one.start for one in work],
    )


def _end(stretch: Interval) -> int:
    return stretch.end
