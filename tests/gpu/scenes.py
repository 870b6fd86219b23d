"""GPU behavior to show once: ``python -m gpu.scenes NAME`` runs it in its own process and prints it."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

MIB: Final = 1 << 20


def taken_over() -> dict[str, Any]:
    """torch.profiler starts while ours records; then each records on its own."""
    import torch
    from torch.profiler import profile as torch_profile

    import pytest_opprof

    one = torch.ones(1000, device="cuda")
    one.add(1)
    with pytest_opprof.profile() as shared:
        one.add(1)
        with torch_profile():
            one.mul(2)
    with pytest_opprof.profile() as after:
        one.add(1)
    with torch_profile() as theirs:
        one.mul(2)
    return {
        "partial": _stats(shared).device_partial,
        "partial after": _stats(after).device_partial,
        "kernels after": _stats(after).device_events,
        "theirs": [row.count for row in theirs.key_averages() if row.key == "cudaLaunchKernel"],
    }


def captured() -> dict[str, Any]:
    """A recording ends while a stream is captured into a graph."""
    import torch

    import pytest_opprof

    given = torch.ones(1000, device="cuda")
    stream = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        (given * 2).sum()
        torch.cuda.synchronize()
        with pytest_opprof.profile() as prof:
            graph.capture_begin()
            result = (given * 2).sum()
        graph.capture_end()
    given.fill_(3)
    graph.replay()
    return {"result": float(result), "lacks": _lacks(prof)}


def allocated() -> dict[str, Any]:
    """Memory that CuPy's allocators allocate and free on the device, by range."""
    import cupy

    import pytest_opprof

    allocators = {
        "malloc": None,
        "malloc_async": cupy.cuda.malloc_async,
        "managed": cupy.cuda.malloc_managed,
        "pool": cupy.cuda.MemoryPool().malloc,
    }
    found: dict[str, Any] = {"lacks": 0}
    for name, allocator in allocators.items():
        cupy.cuda.set_allocator(allocator)
        cupy.ones(10).sum()
        cupy.cuda.Device().synchronize()
        with pytest_opprof.profile(profile_memory=True) as prof:
            with pytest_opprof.record_function("take"):
                block = cupy.ones(MIB // 4, dtype=cupy.float32)
            with pytest_opprof.record_function("give"):
                del block
            with pytest_opprof.record_function("again"):
                block = cupy.ones(MIB // 4, dtype=cupy.float32)
                del block
        rows = [row for row in prof.key_averages() if row.device_type == pytest_opprof.DeviceType.CPU]
        bytes_by_range = {row.key: row.device_memory_usage for row in rows}
        found[name] = [bytes_by_range[key] for key in ("take", "give", "again")]
        found["lacks"] += _lacks(prof)
    return found


def unloaded() -> dict[str, Any]:
    """Kernels of modules that are unloaded when their names are read."""
    import cupy

    import pytest_opprof

    values = cupy.zeros(32, dtype=cupy.float32)
    with pytest_opprof.profile() as prof:
        for number in range(20):
            source = f'extern "C" __global__ void gone_{number}(float *a) {{ a[threadIdx.x] += 1; }}'
            module = cupy.RawModule(code=source)
            module.get_function(f"gone_{number}")((1,), (32,), (values,))
            del module
            gc.collect()
    return {"named": sorted(row.key for row in prof.key_averages() if row.key.startswith("gone_"))}


def freed() -> dict[str, Any]:
    """A tensor from before the recording is freed, under both profilers."""
    import torch
    from torch.profiler import profile as torch_profile
    from torch.profiler import record_function

    import pytest_opprof

    found = {}
    for name, profile in (("ours", pytest_opprof.profile), ("theirs", torch_profile)):
        held = torch.ones(1024, device="cuda")
        with profile(profile_memory=True) as prof, record_function("give"):
            del held
        found[name] = [row.device_memory_usage for row in prof.key_averages() if row.key == "give"]
    return found


def _stats(prof: Any) -> Any:
    return prof.cycles[-1].recording.stats


def _lacks(prof: Any) -> int:
    stats = _stats(prof)
    return int(stats.device_dropped + stats.device_unlaunched + stats.device_untimed + stats.device_partial)


SCENES: Final[Mapping[str, Callable[[], dict[str, Any]]]] = {
    scene.__name__: scene for scene in (taken_over, captured, allocated, unloaded, freed)
}

if __name__ == "__main__":
    print(json.dumps(SCENES[sys.argv[1]]()))
