"""Mark a test; CI fails when its ops become more, slower or hungrier, and says which op, from which line.

The names here are torch.profiler's, with torch or without::

    from pytest_opprof import profile, record_function

    with profile() as prof, record_function("parse"):
        ...
    print(prof.key_averages().table(sort_by="self_cpu_time_total"))

Every pytest session imports this package, since its plugin lives in it: what a name needs is loaded when the
name is first used.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_opprof.capture.ranges import range_pop, range_push, record_function
    from pytest_opprof.events.event_list import EventList
    from pytest_opprof.events.function_event import FunctionEvent
    from pytest_opprof.events.key_averages import FunctionEventAvg
    from pytest_opprof.profiler.activities import ProfilerActivity, supported_activities
    from pytest_opprof.profiler.handlers import tensorboard_trace_handler
    from pytest_opprof.profiler.profile import profile
    from pytest_opprof.profiler.schedule import ProfilerAction, schedule

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "range_pop",
    "range_push",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

_ROOMS = {
    "EventList": "events.event_list",
    "FunctionEvent": "events.function_event",
    "FunctionEventAvg": "events.key_averages",
    "ProfilerAction": "profiler.schedule",
    "ProfilerActivity": "profiler.activities",
    "profile": "profiler.profile",
    "range_pop": "capture.ranges",
    "range_push": "capture.ranges",
    "record_function": "capture.ranges",
    "schedule": "profiler.schedule",
    "supported_activities": "profiler.activities",
    "tensorboard_trace_handler": "profiler.handlers",
}


def __getattr__(name: str) -> Any:
    room = _ROOMS.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if sys.platform != "linux":
        raise ImportError(f"pytest-opprof records on Linux only, and this is {sys.platform}", name=__name__)
    value = getattr(importlib.import_module(f"{__name__}.{room}"), name)
    # The next look-up finds it without coming here.
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
