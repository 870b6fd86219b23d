"""A result of Kineto's as a recording: torch.profiler's own events, with our sums and rules."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from pytest_opprof.capture.inputs import Inputs
from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import check, name_text
from pytest_opprof.capture.recording import Recording
from pytest_opprof.capture.result_columns import ResultColumns
from pytest_opprof.capture.window import MemoryChange
from pytest_opprof.errors import UsageError
from pytest_opprof.events.device import DeviceType
from pytest_opprof.events.kineto_event import KinetoEvent, KinetoResult, device_of, kind_of, told
from pytest_opprof.events.names import readable_name
from pytest_opprof.kinds import FLAG_ASYNC, FLAG_UNFINISHED, USER_SCOPE, EventKind

_CALLS: Final = (EventKind.RUNTIME, EventKind.DRIVER)
_ANNOTATIONS: Final = (EventKind.RANGE, EventKind.DEVICE_RANGE)


class KinetoRecording(ResultColumns):
    """The events of a Kineto result as columns (see `ResultColumns`), nested by time, without hidden events.

    An event that partly overlaps the one before it is not inside it. Memory belongs to the innermost event of
    its own thread. A range that was open when the window closed (Kineto ends it on thread 0) is unfinished,
    not asynchronous as in torch.

    Args:
        use_device: The profiled device, in lower case; empty for none. By default, the device of the events.

    Raises:
        UsageError: An object in the result lacks the methods of an event.
        CollectorError: There is no memory for the columns.
    """

    def __init__(self, result: KinetoResult, *, use_device: str | None = None) -> None:
        try:
            listing = _Listing(result)
        except AttributeError as error:
            raise UsageError(
                f"{type(result).__name__}.events() returned something that is not a Kineto event: {error}; "
                "pass torch's profile.kineto_results"
            ) from error
        columns, order = listing.columns()
        super().__init__(columns)
        self._kineto_result = result
        self._events = [listing.events[index] for index in order]
        self._use_device = use_device
        self.first_id = 0  # Kineto gave each event's id

    @staticmethod
    def _free(result: Any) -> None:
        """Also drop cached names, because the next result reuses their numbers."""
        name_text.cache_clear()
        lib.op_result_free(result)

    @property
    def kineto_result(self) -> KinetoResult | None:
        """The result it was made from."""
        return self._kineto_result

    @functools.cached_property
    def use_device(self) -> str | None:
        """The kind of device that was profiled, in lower case; None for none."""
        if self._use_device is None:
            kinds = sorted({lane.device_type for lane in self.threads} - {0})
            return DeviceType(kinds[0]).name.lower() if kinds else None
        return self._use_device or None

    def keywords(self, event: int) -> dict[str, Any]:
        """The keyword arguments of an op."""
        told_of: dict[str, Any] = told(self._events[event], "kwinputs")
        return told_of

    def kineto_event(self, event: int) -> KinetoEvent:
        """The Kineto event at an index."""
        return self._events[event]

    def overload_name(self, event: int) -> str:
        """The overload of a torch op; "" if it has none or it was not recorded."""
        overload: str = told(self._events[event], "overload_name")
        return overload

    def inputs(self, event: int) -> Inputs | None:
        """The inputs of an event; empty if not recorded."""
        source = self._events[event]
        return Inputs(
            shapes=_shapes(source),
            strides=list(told(source, "structured_input_strides")),
            dtypes=list(told(source, "dtypes")),
            concrete=list(told(source, "concrete_inputs")),
        )

    def memory(self, event: int) -> MemoryChange | None:
        """The allocation or free in an event of kind ``MEMORY``, with address 0; None for other events."""
        change = super().memory(event)
        return change and replace(change, address=0)

    def parted_groups(self, *, by_inputs: bool, by_overload: bool, stack_depth: int) -> None:
        """None, because each event of Kineto's has its own stack."""


class _Listing:
    """The events of a result in the form that the collector reads."""

    def __init__(self, result: KinetoResult) -> None:
        self._begin_ns = result.trace_start_ns()
        self._texts: dict[tuple[str, bool], int] = {}  # by text, and whether it names a call
        self._groups: list[int] = []  # by text
        self._lanes: dict[tuple[int, int, int], int] = {}  # by device type, device index, thread or stream
        self.events = [event for event in result.events() if not told(event, "is_hidden_event")]
        self._listed = [self._entry(event) for event in self.events]

    @functools.cached_property
    def _threads(self) -> dict[int, int]:
        """The thread of each op, by its correlation number."""
        return {
            told(event, "correlation_id"): event.start_thread_id()
            for event in reversed(self.events)
            if device_of(event) == DeviceType.CPU and not told(event, "linked_correlation_id")
        }

    def _entry(self, event: KinetoEvent) -> dict[str, int]:
        kind, cause = kind_of(event), told(event, "linked_correlation_id")
        thread, end_thread = event.start_thread_id(), event.end_thread_id()
        if cause and kind in _CALLS:
            # Kineto has the system's thread number here, but torch's number for ops.
            thread = end_thread = self._threads.get(cause, thread)
        lane, flags, memory = (0, -1, thread), 0, {}
        link = -1 if cause else told(event, "correlation_id")
        if kind is EventKind.MEMORY:
            memory = {
                "bytes": told(event, "nbytes"),
                "device_type": int(device_of(event)),
                "device_index": told(event, "device_index"),
            }
        if kind.is_on_device:
            lane = (int(device_of(event)), told(event, "device_index"), told(event, "device_resource_id"))
            link = cause
        elif end_thread == 0 != thread:
            flags = FLAG_UNFINISHED | FLAG_ASYNC * bool(told(event, "is_async"))
        elif told(event, "is_async") or end_thread != thread:
            flags, link = FLAG_ASYNC, -1
        shapes = _shapes(event)
        return {
            "start_ns": event.start_ns() - self._begin_ns,
            "end_ns": event.end_ns() - self._begin_ns,
            "sequence_nr": told(event, "sequence_nr"),
            "link": link,
            "flops": told(event, "flops") or 0,
            "name": self._name(event.name(), is_call=kind is EventKind.PYTHON_CALL),
            "shapes": self._text(json.dumps(shapes)) if shapes else 0,
            "thread": self._lanes.setdefault(lane, len(self._lanes)),
            "forward_thread": told(event, "fwd_thread_id") & 0xFFFFFFFF,
            "kind": kind,
            "scope": USER_SCOPE if kind in _ANNOTATIONS else told(event, "scope"),
            "flags": flags,
        } | memory

    def _name(self, name: str, *, is_call: bool) -> int:
        readable = readable_name(name)
        return self._text(name, is_call=is_call, group=0 if readable == name else self._text(readable))

    def _text(self, text: str, *, is_call: bool = False, group: int = 0) -> int:
        number = self._texts.setdefault((text, is_call), len(self._texts) + 1)
        if number > len(self._groups):
            self._groups.append(group)
        return number

    def columns(self) -> tuple[Any, Sequence[int]]:
        """A native ``op_result``, and the index of the event of each row."""
        texts = [text.encode("utf-8", "surrogatepass") for text, _ in self._texts]
        held = [ffi.from_buffer(text) for text in texts]
        events = ffi.new("op_listed_event[]", self._listed)
        threads = ffi.new("op_thread_info[]", [_thread(at, *lane) for lane, at in self._lanes.items()])
        pointers, lengths = ffi.new("char *[]", held), ffi.new("uint32_t[]", [*map(len, texts)])
        groups = ffi.new("uint32_t[]", self._groups)
        event_list = ffi.new(
            "op_event_list *",
            {
                "events": events,
                "count": len(self._listed),
                "texts": pointers,
                "text_lengths": lengths,
                "text_groups": groups,
                "text_count": len(texts),
                "threads": threads,
                "thread_count": len(self._lanes),
                "window_ns": self._begin_ns,
            },
        )
        order, made = ffi.new("uint32_t[]", len(self._listed)), ffi.new("op_result **")
        check(lib.op_events_read(event_list, order, made))
        return made[0], ffi.unpack(order, len(self._listed)) if self._listed else ()


def _thread(at: int, device_type: int, device_index: int, number: int) -> dict[str, Any]:
    if device_type:
        return {
            "index": at,
            "device_type": device_type,
            "device_index": device_index,
            "resource": number,
        }
    return {
        "index": at,
        "device_index": -1,
        "os_tid": number & 0xFFFFFFFF,
        "torch_thread": number & 0xFFFFFFFFFFFFFFFF,
    }


def _shapes(event: KinetoEvent) -> list[Any]:
    return list(told(event, "structured_input_shapes") or told(event, "shapes"))


# One finished window as columns. A trace file is a `Recording` too.
RecordingView: TypeAlias = Recording | KinetoRecording
