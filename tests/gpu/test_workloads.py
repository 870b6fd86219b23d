"""On a GPU: device work equals torch.profiler's record of the same program, and gates a test."""

from __future__ import annotations

import pytest
from gpu.comparison import differences
from gpu.machine import on_a_gpu
from gpu.recorded import both
from gpu.workloads import WORKLOADS


@pytest.mark.parametrize("name", WORKLOADS)
def test_device_work_matches_torch_profiler(name: str) -> None:
    on_a_gpu(*WORKLOADS[name].needs)
    ours, theirs = both(name)
    assert differences(ours, theirs) == []


def test_a_hidden_wait_fails_its_test(pytester: pytest.Pytester) -> None:
    on_a_gpu()
    pytester.makepyfile(
        """
        import pytest, torch

        GIVEN = torch.ones(64, device="cuda")

        @pytest.mark.profile(limits=["no_sync", "no_host_copy"])
        def test_stays_on_the_device():
            GIVEN.mul(2)

        @pytest.mark.profile(limits=["no_sync"])
        def test_waits():
            GIVEN.sum().item()
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:randomly", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*syncs.count*"])
