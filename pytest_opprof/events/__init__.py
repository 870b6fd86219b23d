"""Timed, named, nested ops: one by one, and summed up by name."""

from pytest_opprof.events.device import DeviceType
from pytest_opprof.events.event_list import EventList
from pytest_opprof.events.function_event import FunctionEvent
from pytest_opprof.events.function_event_avg import FunctionEventAvg
from pytest_opprof.events.key_averages import KeyAverages
from pytest_opprof.events.times import Interval, Kernel

__all__ = [
    "DeviceType",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "KeyAverages",
]
