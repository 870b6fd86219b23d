"""torch.profiler's API over our own collector, with torch or without."""

from pytest_opprof.profiler.activities import ProfilerActivity, supported_activities
from pytest_opprof.profiler.cycle import Cycle
from pytest_opprof.profiler.handlers import tensorboard_trace_handler
from pytest_opprof.profiler.profile import profile
from pytest_opprof.profiler.schedule import ProfilerAction, schedule

__all__ = [
    "Cycle",
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
