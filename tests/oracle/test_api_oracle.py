"""Code written for torch.profiler, over torch's profile and over ours: it must see the same."""

from collections.abc import Callable
from typing import Any

import pytest

import pytest_opprof
from pytest_opprof import DeviceType, EventList, FunctionEvent

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("torch")
BOTH = pytest.mark.parametrize("api", [torch.profiler, pytest_opprof], ids=["torch", "ours"])


def program() -> None:
    with torch.profiler.record_function("load"):
        torch.ones(2, 3).add(1, alpha=2).sum(1)


def profiled(api: Any, program: Callable[[], object] = program, **settings: object) -> Any:
    with api.profile(activities=[torch.profiler.ProfilerActivity.CPU], **settings) as prof:
        program()
    return prof


# ---- device types ----


@BOTH
def test_device_types_equal_torchs(api: Any) -> None:
    host, device = torch.autograd.DeviceType.CPU, torch.autograd.DeviceType.CUDA
    prof = profiled(api)
    shown = [*prof.events(), *prof.key_averages(), prof.key_averages().total_average()]
    if api is pytest_opprof:
        shown += [*prof.events().as_torch(), *prof.key_averages(compat="torch")]
    assert shown
    for one in shown:
        kind = one.device_type
        assert isinstance(kind, torch.autograd.DeviceType)
        assert (kind == host, host == kind, kind != host, host != kind) == (True, True, False, False)
        assert (kind == device, device == kind, kind != device) == (False, False, True)
        assert {kind, host} == {host}
        assert (str(kind), kind.name, int(kind)) == ("DeviceType.CPU", "CPU", 0)


def test_device_types_equal_ours_too() -> None:
    kind, host, device = profiled(pytest_opprof).events()[0].device_type, DeviceType.CPU, DeviceType.CUDA
    assert (kind == host, host == kind, kind == device, device == kind) == (True, True, False, False)
    assert {kind, host} == {host}


def test_events_take_torchs_device_types() -> None:
    kernel = FunctionEvent(
        id=1,
        name="gemm",
        thread=1,
        start_us=0,
        end_us=4,
        use_device="cuda",
        device_type=torch.autograd.DeviceType.CUDA,
    )
    op = FunctionEvent(
        id=2, name="mm", thread=1, start_us=0, end_us=9, device_type=torch.autograd.DeviceType.CPU
    )
    assert (kernel.cpu_time_total, kernel.device_time_total, op.cpu_time_total) == (0, 4, 9)
    assert [row.device_type.name for row in EventList([kernel, op]).key_averages()] == ["CUDA", "CPU"]
