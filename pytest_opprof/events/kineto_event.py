"""Kineto's events, as torch reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from pytest_opprof.events.device import DeviceType
from pytest_opprof.events.names import MEMORY_EVENT_NAME, OUT_OF_MEMORY_EVENT_NAME
from pytest_opprof.kinds import EventKind

# The value of what an event does not tell: releases of torch differ, and some facts are unknown.
UNTOLD: Final[dict[str, Any]] = {
    "activity_type": None,
    "concrete_inputs": (),
    "correlation_id": 0,
    "cuda_elapsed_us": -1,
    "device_index": 0,
    "device_resource_id": 0,
    "device_type": DeviceType.CPU,
    "dtypes": (),
    "external_id": 0,
    "extra_meta": None,
    "flops": 0,
    "flow_id": None,
    "flow_start": None,
    "flow_type": None,
    "fwd_thread_id": 0,
    "is_async": False,
    "is_hidden_event": False,
    "is_python_function": False,
    "is_user_annotation": False,
    "kwinputs": {},
    "linked_correlation_id": 0,
    "metadata_json": None,
    "nbytes": 0,
    "overload_name": "",
    "privateuse1_elapsed_us": -1,
    "python_id": -1,
    "python_module_id": -1,
    "python_parent_id": -1,
    "scope": 0,
    "sequence_nr": -1,
    "shapes": (),
    "stack": (),
    "structured_input_shapes": (),
    "structured_input_strides": (),
}


class KinetoEvent(Protocol):
    """What every event of ``kineto_results.events()`` has; `told` reads the rest."""

    def name(self) -> str:
        """The name as recorded."""

    def start_ns(self) -> int:
        """The start, nanoseconds on the result's clock."""

    def end_ns(self) -> int:
        """The end, nanoseconds on the result's clock."""

    def start_thread_id(self) -> int:
        """The thread it began on."""

    def end_thread_id(self) -> int:
        """The thread it ended on; 0 if it had not ended."""


class KinetoResult(Protocol):
    """Torch's ``profile.kineto_results``, or any object with these methods."""

    def events(self) -> Iterable[KinetoEvent]:
        """The events."""

    def trace_start_ns(self) -> int:
        """When the window began."""


def told(event: object, what: str) -> Any:
    """What an event's method of this name returns; a neutral value if it has no such method."""
    ask: Callable[[], Any] | None = getattr(event, what, None)  # the event may be None
    return UNTOLD[what] if ask is None else ask()


def device_of(event: KinetoEvent) -> DeviceType:
    """The type of device that an event ran on, whether it has torch's enumeration or ours."""
    return DeviceType(int(told(event, "device_type")))


def is_set_aside(event: KinetoEvent) -> bool:
    """Whether torch treats an event as asynchronous: it says so, or it ended on another thread or never."""
    return bool(told(event, "is_async")) or event.start_thread_id() != event.end_thread_id()


# Kineto's activity types for our kinds.
_ACTIVITIES: Final = {
    EventKind.ITT: "user_annotation",
    EventKind.NVTX: "user_annotation",
    EventKind.PYTHON_CALL: "python_function",
    EventKind.C_CALL: "python_function",
    EventKind.MARK: "cpu_instant_event",
    EventKind.MEMORY: "cpu_instant_event",
    EventKind.RUNTIME: "cuda_runtime",
    EventKind.DRIVER: "cuda_driver",
    EventKind.KERNEL: "kernel",
    EventKind.MEMCPY: "gpu_memcpy",
    EventKind.MEMSET: "gpu_memset",
    EventKind.SYNC: "cuda_sync",
    EventKind.DEVICE_RANGE: "gpu_user_annotation",
}


def activity_of(kind: EventKind, *, user_scope: bool) -> str:
    """Kineto's activity type for a kind. Torch's ranges and ours have the same."""
    if kind in (EventKind.TORCH, EventKind.RANGE):
        return "user_annotation" if user_scope else "cpu_op"
    return _ACTIVITIES[kind]


def kind_of(event: KinetoEvent) -> EventKind:
    """Our kind for an event of Kineto's."""
    if event.name() in (MEMORY_EVENT_NAME, OUT_OF_MEMORY_EVENT_NAME):
        return EventKind.MEMORY
    activity = told(event, "activity_type")
    if told(event, "is_user_annotation"):
        on_host = device_of(event) == DeviceType.CPU
        return EventKind.RANGE if on_host else EventKind.DEVICE_RANGE
    if told(event, "is_python_function"):
        return EventKind.PYTHON_CALL
    if device_of(event) != DeviceType.CPU:
        return _DEVICE_KINDS.get(activity, EventKind.KERNEL)
    return _HOST_KINDS.get(activity, EventKind.TORCH)


_DEVICE_KINDS: Final = {
    "gpu_memcpy": EventKind.MEMCPY,
    "gpu_memset": EventKind.MEMSET,
    "cuda_sync": EventKind.SYNC,
    "xpu_sync": EventKind.SYNC,
}
_HOST_KINDS: Final = {
    f"{device}_{layer}": kind
    for device in ("cuda", "xpu", "mtia", "privateuse1", "glow")
    for layer, kind in (("runtime", EventKind.RUNTIME), ("driver", EventKind.DRIVER))
}
