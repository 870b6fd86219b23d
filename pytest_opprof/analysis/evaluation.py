"""``BasicEvaluation``: self time, the queue of kernels, idle time, and the events most worth a look.

It is ``torch.profiler._utils.BasicEvaluation`` without torch, for any profile that has
``kineto_results.events()`` and ``kineto_results.experimental_event_tree()``.
"""

from __future__ import annotations

import functools
import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, TypeVar

from pytest_opprof.analysis.kernel_queue import Cover, Interval, KernelQueue, name_of, union
from pytest_opprof.events.device import DeviceType
from pytest_opprof.events.kineto_event import device_of

_T = TypeVar("_T")

_PYTHON_CALL: Final = re.compile(r"\.py\(.*\)")
_LINE: Final = "-" * 80
_FULL: Final = 4  # kernels in a queue that a host keeps filled
_SELF_TIME_WEIGHT: Final = 0.6


def _traverse(
    tree: Sequence[Any],
    next_fn: Callable[[deque[Any]], Any],
    children_fn: Callable[[Any], Sequence[Any]] = lambda event: event.children,
    reverse: bool = False,  # noqa: FBT001, FBT002  # torch's signature
) -> Iterator[Any]:
    """Each event of a tree, given its roots. `next_fn` takes the next one from those that are waiting."""
    order: Callable[[Sequence[Any]], Iterable[Any]] = reversed if reverse else iter
    waiting = deque(order(tree))
    while waiting:
        event = next_fn(waiting)
        yield event
        waiting.extend(order(children_fn(event)))


# In preorder, and level by level. They are partials as in torch, so that callers may override arguments.
traverse_dfs = functools.partial(_traverse, next_fn=deque.pop, reverse=True)
traverse_bfs = functools.partial(_traverse, next_fn=deque.popleft, reverse=False)


def last_first(tree: Sequence[Any]) -> Iterator[Any]:
    """Each event before those inside it, and the last sibling first: the order of torch's metrics."""
    return _traverse(tree, next_fn=deque.pop)


def source_code_location(event: Any) -> str:
    """The innermost Python call around an event of a tree, the event itself included."""
    while event is not None:
        name = name_of(event)
        if _PYTHON_CALL.search(name):
            return name
        event = event.parent
    return "No source code location found"


@dataclass
class EventMetrics:
    """The metrics of one event.

    Attributes:
        duration_time_ns: Its duration.
        self_time_ns: Its duration less that of the host events directly inside it.
        idle_time_ns: The part of its duration in which no kernel was waiting or running.
        queue_depth: Kernels that were launched but not started when it began.
    """

    duration_time_ns: int = 0
    self_time_ns: int = 0
    idle_time_ns: int = 0
    queue_depth: int = 0

    @property
    def fraction_idle_time(self) -> float:
        """The share of its time that was idle; 0 if it took no time."""
        return self.idle_time_ns / self.duration_time_ns if self.duration_time_ns else 0.0


class EventKey:
    """An event of a tree as a key: two are equal if the events have the same ``id``."""

    def __init__(self, event: Any) -> None:
        self.event = event

    def __hash__(self) -> int:
        return hash(self.event.id)

    def __eq__(self, other: object) -> bool:
        return self.event.id == other.event.id if isinstance(other, EventKey) else NotImplemented

    def __repr__(self) -> str:
        return name_of(self.event)

    def intervals_overlap(self, intervals: Sequence[Interval]) -> int:
        """How much of the event lies in any of the intervals, nanoseconds; they may overlap, in any order."""
        return Cover(union(intervals)).overlap(self.event.start_time_ns, self.event.end_time_ns)


class BasicEvaluation:
    """The metrics of a profile's events, and the queue of its kernels.

    The numbers differ from those of torch's class: launches of all kinds are found by their correlation
    number, also of graphs, of the driver and on ROCm; device time is not subtracted from the self time of its
    launch; overlaps are exact; events that are all alike have a ranking.

    Args:
        prof: A profile of ours or of ``torch.profiler``, or anything with such ``kineto_results``.

    Attributes:
        metrics: By `EventKey`, in the order of a walk through the tree.
        event_keys: The same keys, in start order.
        events: The events of `event_keys`.
        cuda_events: Launches and kernels, in start order.
        queue_depth_list: For each of `cuda_events`, its time and the depth of the queue when it began.

    Raises:
        AssertionError: The profile has no results, or two events have one id. Torch raises the same.
    """

    def __init__(self, prof: Any) -> None:
        self.profile = prof
        self.metrics: dict[EventKey, EventMetrics] = {}
        self._on_device: set[EventKey] = set()
        self.compute_self_time()
        self.event_keys = sorted(self.metrics, key=lambda key: int(key.event.start_time_ns))
        self.events = [key.event for key in self.event_keys]
        self.cuda_events: list[Any] = []
        self.queue_depth_list = self.compute_queue_depth()
        self.compute_idle_time()

    @functools.cached_property
    def _kineto_events(self) -> list[Any]:
        # Cached, because a profile creates them on each call.
        return list(self._results.events())

    @property
    def _results(self) -> Any:
        # torch.profiler.profile has them in its `profiler`, torch.autograd.profiler.profile itself.
        owner = self.profile if hasattr(self.profile, "kineto_results") else self.profile.profiler
        if owner.kineto_results is None:
            raise AssertionError("kineto_results must not be None")
        return owner.kineto_results

    def compute_self_time(self) -> None:
        """Compute each event's duration and self time: less the host events directly inside it."""
        # Device events by name and start, because a tree does not say where its events ran.
        on_device = (event for event in self._kineto_events if device_of(event) != DeviceType.CPU)
        device = {(name_of(event), event.start_ns()) for event in on_device}
        for event in last_first(self._results.experimental_event_tree()):
            key = EventKey(event)
            if key in self.metrics:
                raise AssertionError(f"Duplicate id: {event.id}, {name_of(event)}")
            if (name_of(event), event.start_time_ns) in device:
                self._on_device.add(key)
            duration = event.duration_time_ns
            inside = sum(
                child.duration_time_ns
                for child in event.children
                if (name_of(child), child.start_time_ns) not in device
            )
            self.metrics[key] = EventMetrics(duration_time_ns=duration, self_time_ns=duration - inside)

    def compute_queue_depth(self) -> list[Interval]:
        """Compute how many kernels were waiting when each event of the tree, launch and kernel began.

        Returns:
            The time and depth of each launch and kernel.
        """
        kernels = KernelQueue(self._kineto_events)
        told = kernels.points()
        self.cuda_events = [event for event, _ in told]
        end = max((event.end_time_ns for event in self.events), default=0)
        self._idle = kernels.idle(self.events[0].start_time_ns, end) if self.events else []
        for key in self.event_keys:
            self.metrics[key].queue_depth = kernels.depth(key.event.start_time_ns)
        return [point for _, point in told]

    def compute_idle_time(self) -> None:
        """Compute for how much of each event no kernel was waiting or running."""
        for metrics, idle in zip(self.metrics.values(), self._overlaps(self._idle), strict=True):
            metrics.idle_time_ns = idle

    def rank_events(self, length: int) -> list[EventKey]:
        """The events most worth a look, best first, at most `length`.

        These are host events during which a queue of at least 4 kernels ran empty, ranked by the share of
        their time that was idle and by their self time.
        """
        overlaps = self._overlaps(falling_phases(self.queue_depth_list))
        found = [
            key
            for key, overlap in zip(self.metrics, overlaps, strict=True)
            if overlap and key not in self._on_device
        ]
        scored = scores(
            [self.metrics[key].fraction_idle_time for key in found],
            [self.metrics[key].self_time_ns for key in found],
        )
        ranked = sorted(zip(scored, found, strict=True), key=lambda pair: pair[0], reverse=True)
        return [key for _, key in ranked[:length]]

    def get_optimizable_events(
        self,
        length: int = 1,
        print_enable: bool = True,  # noqa: FBT001, FBT002  # torch's signature
    ) -> list[EventKey]:
        """The events of `rank_events`.

        Args:
            length: The most to return.
            print_enable: Also print them, with the line of Python that they were called from.
        """
        found = self.rank_events(length)
        if print_enable:
            title = "Optimizable events:\n" if found else "No events to optimize\n"
            print(title + "\n".join(self._told(key) for key in found))  # noqa: T201  # what it is asked for
        return found

    def _told(self, key: EventKey) -> str:
        return (
            f"{_LINE}\n"
            f"Event:                {key}\n"
            f"Source code location: {source_code_location(key.event)}\n"
            f"Percentage idle time: {self.metrics[key].fraction_idle_time * 100:.2f}%\n"
            f"{_LINE}"
        )

    def _overlaps(self, intervals: Sequence[Interval]) -> list[int]:
        """How much of each event of `metrics` lies in any of the intervals, nanoseconds."""
        cover = Cover(union(intervals))
        return [cover.overlap(key.event.start_time_ns, key.event.end_time_ns) for key in self.metrics]


def index_of_first_match(
    seq: Sequence[_T], predicate: Callable[[_T], object], start: int = 0, end: int | None = None
) -> int | None:
    """The index of the first element that matches, from `start` up to `end`; None if there is none."""
    stop = len(seq) if end is None else min(end, len(seq))
    return next((index for index in range(start, stop) if predicate(seq[index])), None)


def argmax(
    seq: Sequence[_T],
    key: Callable[[_T], object] = lambda element: element,
    start: int = 0,
    end: int | None = None,
) -> int | None:
    """The index of the first largest element, from `start` up to `end`; None if there is none."""
    places = range(*slice(start, end).indices(len(seq)))
    return max(places, key=lambda index: key(seq[index]), default=None)  # type: ignore[arg-type, return-value]  # what compares is the caller's


def falling_phases(points: Sequence[Interval]) -> list[Interval]:
    """The intervals from each peak of a filled queue to the moment at which it has run empty.

    The points are in time order. Of several deepest points, the last one is the peak.
    """
    phases = []
    for is_filled, stretch in groupby(range(len(points)), key=lambda index: points[index].queue_depth > 0):
        places = list(stretch)
        empty = places[-1] + 1
        if is_filled and empty < len(points):
            peak = max(places, key=lambda index: (points[index].queue_depth, index))
            if points[peak].queue_depth >= _FULL:
                phases.append(Interval(points[peak].start, points[empty].start))
    return phases


def scores(idle_fractions: Sequence[float], self_times: Sequence[float]) -> list[float]:
    """How much each event stands out by its idle share, and with less weight by its self time."""
    return [
        idle + _SELF_TIME_WEIGHT * own
        for idle, own in zip(_standardized(idle_fractions), _standardized(self_times), strict=True)
    ]


def _standardized(values: Sequence[float]) -> list[float]:
    """Values in standard deviations from their mean; 0 if all are equal or there is only one."""
    if len(values) < 2:  # noqa: PLR2004  # a deviation needs two
        return [0.0] * len(values)
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return [(value - mean) / deviation if deviation else 0.0 for value in values]
