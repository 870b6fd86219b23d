"""On a GPU: CUPTI's behavior where no other profiler can serve as a reference."""

from __future__ import annotations

import pytest
from gpu.machine import on_a_gpu
from gpu.recorded import child
from gpu.scenes import MIB


def test_torch_profiler_that_starts_meanwhile_is_noticed() -> None:
    on_a_gpu()
    assert child("scenes", "taken_over") == {
        "partial": True,
        "partial after": False,
        "kernels after": 1,
        "theirs": [1],
    }


def test_a_recording_that_ends_in_a_capture_leaves_it_whole() -> None:
    on_a_gpu()
    assert child("scenes", "captured") == {"result": 6000, "lacks": 0}


def test_memory_that_no_torch_allocator_takes_has_its_range() -> None:
    on_a_gpu("cupy")
    each_time = [MIB, -MIB, 0]
    assert child("scenes", "allocated") == {
        "malloc": each_time,
        "malloc_async": each_time,
        "managed": each_time,
        "pool": [MIB, 0, 0],
        "lacks": 0,
    }


def test_a_kernel_keeps_its_name_when_its_module_is_gone() -> None:
    on_a_gpu("cupy")
    assert child("scenes", "unloaded") == {"named": sorted(f"gone_{number}" for number in range(20))}


def test_free_of_an_earlier_tensor_matches_torch_profiler() -> None:
    on_a_gpu()
    assert child("scenes", "freed") == {"ours": [-4096], "theirs": [-4096]}


def test_unchanged_code_is_compared_and_passes(pytester: pytest.Pytester) -> None:
    on_a_gpu("cupy")
    pytester.makepyfile(
        """
        import cupy, pytest, torch
        from torch.nn.functional import conv2d, scaled_dot_product_attention

        @pytest.mark.profile
        def test_library_kernels():
            square = torch.ones(64, 64, device="cuda", requires_grad=True)
            (square @ square).sum().backward()
            torch.fft.fft(square)

        @pytest.mark.profile
        def test_attention():
            query = torch.ones(2, 4, 64, 32, device="cuda", dtype=torch.float16)
            scaled_dot_product_attention(query, query, query, is_causal=True)

        @pytest.mark.profile
        def test_convolution():
            conv2d(torch.ones(4, 16, 32, 32, device="cuda"), torch.ones(8, 16, 3, 3, device="cuda")).mean()

        @pytest.mark.profile
        def test_streams():
            with torch.cuda.stream(torch.cuda.Stream()):
                torch.ones(1000, device="cuda").mul(2).sum()

        @pytest.mark.profile
        def test_cupy():
            values = cupy.arange(10_000, dtype=cupy.float32)
            (cupy.sin(values) * 2).sum()
        """
    )
    plain = ("-p", "no:randomly", "-p", "no:cacheprovider")
    pytester.runpytest_subprocess(*plain, "--opprof-save=main").assert_outcomes(passed=5)
    for _ in range(3):
        pytester.runpytest_subprocess(*plain, "--opprof-baseline=main").assert_outcomes(passed=5)
