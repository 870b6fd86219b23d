"""CUDA activities recorded by the plugin only, over the fake libcupti."""

import pytest
from e2e.project import Project

from pytest_opprof.capture.cuda import has_driver

pytestmark = pytest.mark.usefixtures("fake_cuda")

STEPS = """
    from support.cuda import fake_cuda
    import pytest
    from pytest_opprof import record_function

    cuda = fake_cuda.load()

    @pytest.mark.profile(activities=["cpu", "cuda"], warmup=1, active=3LIMITS)
    def test_step():
        with record_function("forward"):
            cuda.launch("gemm", ns=1000)
            cuda.memcpy(fake_cuda.DTOH, 4096)
        cuda.synchronize()
"""


def test_a_test_has_the_kernels_of_its_steps(project: Project) -> None:
    project.write("test_it.py", STEPS.replace("LIMITS", ""))
    session = project.pytest()
    assert session.outcomes == {"test_step": "passed"}
    test = session.result("test_step")
    assert "cuda" in test.sources
    assert [test.totals[name].low for name in ("kernels.count", "copies.count", "copies.bytes")] == [
        1,
        1,
        4096,
    ]
    assert {"gemm", "cudaLaunchKernel", "forward"} <= {row.name for row in test.ops}


def test_a_wait_fails_the_test_that_forbids_it(project: Project) -> None:
    project.write("test_it.py", STEPS.replace("LIMITS", ', limits=["no_sync"]'))
    session = project.pytest()
    assert session.outcomes == {"test_step": "failure"}
    assert "syncs.count" in session.failures["test_step"]


def test_refused_cuda_is_reported_and_inconclusive(project: Project) -> None:
    refused = STEPS.replace(
        "cuda = fake_cuda.load()", 'cuda = fake_cuda.load()\n    cuda.fail("cuptiActivityEnable", 35)'
    )
    project.write("test_it.py", refused.replace("LIMITS", ', limits=["no_sync"]'))
    session = project.pytest()
    told = [line for line in session.told if "no CUDA capture" in line]
    assert len(told) == 1
    assert "NVreg_RestrictProfilingToAdminUsers=0" in told[0]
    assert told[0].endswith("CUDA gates are inconclusive")
    assert session.exit_code != 0


def test_cuda_refused_at_first_use_is_reported(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        from support.cuda import fake_cuda
        import pytest

        @pytest.mark.profile(activities=["cpu", "cuda"], warmup=0, active=1)
        @pytest.mark.parametrize("number", [1, 2])
        def test_step(number):
            fake_cuda.load().fail("cuptiActivityEnable", 35)
        """,
    )
    # The header could not know, so the end reports it, once for both.
    assert sum("NVreg_RestrictProfilingToAdminUsers=0" in line for line in project.pytest().told) == 1


@pytest.mark.slow
@pytest.mark.skipif(has_driver(), reason="there is a driver on this machine")
def test_missing_driver_is_reported_if_cuda_was_requested(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        import pytest

        @pytest.mark.profile(activities=["cpu", "cuda"])
        def test_it():
            pass
        """,
    )
    sentence = (
        "opprof: no CUDA capture (there is no NVIDIA driver (libcuda.so.1) on this machine): "
        "CUDA gates are inconclusive"
    )
    assert sentence in project.pytest().told
    assert sentence in project.pytest("--opprof-capture=ranges,ops,cuda").told


MEMORY = """
    from support.cuda import fake_cuda
    import pytest
    from pytest_opprof import record_function

    cuda = fake_cuda.load()

    @pytest.mark.profile(activities=["cpu", "cuda"], profile_memory=True, warmup=1, active=3LIMITS)
    def test_step():
        with record_function("forward"):
            cuda.run("malloc", address=0x1000, bytes=3 << 20)
            cuda.run("malloc", address=0x9000, bytes=1 << 20, api="driver")
            cuda.run("free", address=0x1000, bytes=3 << 20)
            MORE
        cuda.run("free", address=0x9000)
"""


@pytest.mark.slow
def test_a_test_has_the_device_memory_of_its_steps(project: Project) -> None:
    project.write("test_it.py", MEMORY.replace("LIMITS", "").replace("MORE", "pass"))
    session = project.pytest("--opprof-save=main", "-v")
    test = session.result("test_step")
    assert {"memory-cuda", "memory-python"} <= set(test.sources)
    totals = {name: samples.low for name, samples in test.totals.items() if name.startswith("device_memory")}
    assert totals == {
        "device_memory.allocated": 4 << 20,
        "device_memory.peak": 4 << 20,
        "device_memory.allocations": 2,
    }
    memory = {
        row.name: row.metrics["device_memory"].low for row in test.ops if "device_memory" in row.metrics
    }
    assert memory == {"forward": 1 << 20}
    assert any("CUDA Mem" in line for line in session.stdout.splitlines())
    # The call itself allocates Python memory, so both sides make it.
    project.replace("test_it.py", "pass", 'cuda.run("malloc", address=0x200000, bytes=100)')
    project.pytest("--opprof-save=main")
    project.replace("test_it.py", "bytes=100", "bytes=200")
    compared = project.pytest("--opprof-baseline=main")
    assert "REGRESSED: 100 B more allocated CUDA memory in each step" in compared.failures["test_step"]


def test_device_memory_that_was_not_recorded_proves_nothing(project: Project) -> None:
    limit = ', limits={"device_memory.peak": "<= 1 GiB"}'
    project.write(
        "test_it.py",
        MEMORY.replace("LIMITS", limit).replace("MORE", "pass").replace("profile_memory=True", "trace=False"),
    )
    session = project.pytest()
    assert session.outcomes == {"test_step": "failure"}
    assert "needs memory-cuda capture" in session.failures["test_step"]
