"""Features that older releases' torch.profiler lacks: a test that needs one is skipped with the reason."""

from __future__ import annotations

import inspect
from typing import Any

import pytest


def experimental(torch: Any, **settings: Any) -> Any:
    """The profiler's experimental settings; skips the test if this torch lacks one."""
    try:
        return torch._C._profiler._ExperimentalConfig(**settings)
    except TypeError:
        pytest.skip(f"the profiler of torch {torch.__version__} has no {', '.join(settings)}")


def tells_inputs(torch: Any) -> bool:
    """Whether Kineto's events have shapes and strides, lists of tensors among them."""
    return hasattr(torch._C._autograd._KinetoEvent, "structured_input_shapes")


def credits_memory_exactly(torch: Any) -> bool:
    """Whether the profiler finds a block's op by times in nanoseconds.

    Older ones use microseconds since 1970 in doubles, which cannot distinguish times less than 0.25 us apart.
    """
    parameters = inspect.signature(torch.autograd.profiler_util.MemRecordsAcc.in_interval).parameters
    return "start_us" not in parameters


def sums_as_ours(torch: Any) -> bool:
    """Whether this torch sums events by the rules of ``compat="torch"``, those of torch 2.13.

    Events of earlier releases have no metadata of their own. Since 2.15, work without an op has no kernels.
    """
    return "metadata_json" in inspect.signature(torch.autograd.profiler_util.FunctionEvent).parameters


def skip_unless_overloads(torch: Any) -> None:
    """Skip the test if the profiler does not know overloads, as before torch 2.7."""
    if (
        "group_by_overload_name"
        not in inspect.signature(torch.autograd.profiler_util.EventList.key_averages).parameters
    ):
        pytest.skip(f"the profiler of torch {torch.__version__} knows no overloads")
