"""What older releases' torch.profiler cannot tell: a test that compares with it is skipped there, and says why."""

from __future__ import annotations

import inspect
from typing import Any

import pytest


def experimental(torch: Any, **settings: Any) -> Any:
    """The profiler's experimental settings; skips the test where this torch lacks one."""
    try:
        return torch._C._profiler._ExperimentalConfig(**settings)
    except TypeError:
        pytest.skip(f"the profiler of torch {torch.__version__} has no {', '.join(settings)}")


def tells_inputs(torch: Any) -> bool:
    """Whether Kineto's events have shapes and strides, lists of tensors among them."""
    return hasattr(torch._C._autograd._KinetoEvent, "structured_input_shapes")


def credits_memory_exactly(torch: Any) -> bool:
    """Whether the profiler looks for the op of a block by nanoseconds.

    Before, both were microseconds since 1970 in doubles, which cannot tell what is less than 0.25 us apart.
    """
    parameters = inspect.signature(torch.autograd.profiler_util.MemRecordsAcc.in_interval).parameters
    return "start_us" not in parameters


def sums_as_ours(torch: Any) -> bool:
    """Whether this torch sums events up by the rules that ``compat="torch"`` has: those of torch 2.13.

    Earlier releases' events had no metadata of their own. Since 2.15 what no op began has no kernels.
    """
    return "metadata_json" in inspect.signature(torch.autograd.profiler_util.FunctionEvent).parameters


def skip_unless_overloads(torch: Any) -> None:
    """Skips the test where the profiler's events and tables do not know overloads, as before torch 2.7."""
    if (
        "group_by_overload_name"
        not in inspect.signature(torch.autograd.profiler_util.EventList.key_averages).parameters
    ):
        pytest.skip(f"the profiler of torch {torch.__version__} knows no overloads")
