"""The clock that waits for devices, in separate programs."""

import pytest
from support.programs.children import answer_of, run_python

# A fake torch whose devices need no libcuda, as on ROCm, with only what the clock uses.
ROCM = """
    import json, sys, types

    waited = []
    torch = types.ModuleType("torch")
    torch.__version__, torch.version, torch.autograd = "2.13.0+rocm", object(), object()
    torch.cuda = types.SimpleNamespace(
        is_initialized=lambda: STARTED, device_count=lambda: 3, synchronize=waited.append
    )
    torch._C = types.SimpleNamespace(_cuda_hasPrimaryContext=lambda device: device != 1)
    sys.modules["torch"] = torch

    import warnings
    from pytest_opprof.timers import cuda_perf_counter

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        first, second = cuda_perf_counter(), cuda_perf_counter()
    assert first <= second
    print(json.dumps({"waited": waited, "told": len(told)}))
"""


@pytest.mark.parametrize(
    ("started", "waited", "told"),
    [("True", [0, 2, 0, 2], 0), ("False", [], 1)],
    ids=["started", "not started"],
)
def test_torch_waits_for_devices_without_libcuda(started: str, waited: list[int], told: int) -> None:
    assert answer_of(ROCM.replace("STARTED", started)) == {"waited": waited, "told": told}


def test_missing_cuda_is_reported_once() -> None:
    said = run_python(
        """
        import warnings
        from pytest_opprof.timers import cuda_perf_counter

        warnings.simplefilter("always")
        for _ in range(3):
            cuda_perf_counter()
        """
    )
    assert said.stderr.count("CUDA was not in use in this process") == 1


def test_timer_does_not_load_cuda() -> None:
    answer = answer_of(
        """
        import json, warnings
        from pytest_opprof.timers import cuda_perf_counter

        warnings.simplefilter("ignore")
        cuda_perf_counter()
        print(json.dumps("libcuda" in open("/proc/self/maps").read()))
        """
    )
    assert answer is False


@pytest.mark.usefixtures("fake_cuda")
def test_cuda_that_starts_later_is_found() -> None:
    answer = answer_of(
        """
        import json, warnings
        from pytest_opprof.timers import cuda_perf_counter

        warnings.simplefilter("ignore")
        cuda_perf_counter()
        from support.cuda import fake_cuda
        cuda = fake_cuda.load(device=None)
        cuda_perf_counter()
        before = cuda.calls("cuCtxSynchronize")
        cuda.use_device(1)
        cuda_perf_counter()
        print(json.dumps([before, cuda.calls("cuCtxSynchronize")]))
        """
    )
    assert answer == [0, 1]
