"""CUDA timings in pytest-benchmark, over the fake CUDA."""

import pytest

pytestmark = pytest.mark.usefixtures("fake_cuda", "no_worker")

TIMER = "--benchmark-timer=pytest_opprof.timers.cuda_perf_counter"
# A benchmark of N rounds that reports how often the driver had to wait.
BENCHMARK = """
    from support.cuda import fake_cuda

    def test_kernel(benchmark):
        cuda = fake_cuda.load(device=None)
        for device in DEVICES:
            cuda.use_device(device)
        before = cuda.calls("cuCtxSynchronize")
        benchmark.pedantic(lambda: [cuda.launch("gemm", device=one, ns=1000) for one in DEVICES], rounds=5)
        print("\\nwaits:", cuda.calls("cuCtxSynchronize") - before, "inits:", cuda.calls("cuInit"))
"""


@pytest.fixture
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide our own xdist worker from the inner run, where pytest-benchmark would time nothing."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)


def run(pytester: pytest.Pytester, devices: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(BENCHMARK.replace("DEVICES", devices))
    result = pytester.runpytest_subprocess("-s", TIMER, *options)
    result.assert_outcomes(passed=1)
    return result


@pytest.mark.slow
@pytest.mark.parametrize(("devices", "waits"), [("[1]", 10), ("[0, 1]", 20)])
def test_each_reading_waits_for_each_device_in_use(
    pytester: pytest.Pytester, devices: str, waits: int
) -> None:
    result = run(pytester, devices)
    result.stdout.fnmatch_lines(
        [
            "benchmark: *timer=pytest_opprof.timers.cuda_perf_counter*",
            f"waits: {waits} inits: *",
            "*benchmark: 1 tests*",
            "test_kernel *",
        ]
    )
    result.stdout.no_fnmatch_line("*cuda_perf_counter: CUDA was not in use*")


@pytest.mark.slow
def test_calibration_takes_the_timer(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from support.cuda import fake_cuda

        def test_kernel(benchmark):
            cuda = fake_cuda.load()
            benchmark(cuda.launch, "gemm", ns=1000)
            print("\\nrounds:", benchmark.stats.stats.rounds, "waits:", cuda.calls("cuCtxSynchronize"))
        """
    )
    result = pytester.runpytest_subprocess(
        "-s", TIMER, "--benchmark-max-time=0.05", "--benchmark-min-rounds=3"
    )
    result.assert_outcomes(passed=1)
    rounds, waits = next(
        (int(line.split()[1]), int(line.split()[3])) for line in result.outlines if line.startswith("rounds:")
    )
    assert rounds >= 3
    assert waits > 2 * rounds


@pytest.mark.slow
def test_host_clock_without_cuda_is_reported_once(pytester: pytest.Pytester) -> None:
    result = run(pytester, "[]")
    result.stdout.fnmatch_lines(["waits: 0 inits: 0"])
    said = [line for line in result.outlines if "CUDA was not in use" in line]
    assert said == [
        "cuda_perf_counter: CUDA was not in use in this process, so its times are only those of the host"
    ]


@pytest.mark.slow
def test_error_of_a_kernel_fails_the_benchmark(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from support.cuda import fake_cuda

        def test_kernel(benchmark):
            cuda = fake_cuda.load()
            cuda.driver.fake_cuda_fail(b"cuCtxSynchronize", 700)
            benchmark.pedantic(cuda.launch, rounds=5)
        """
    )
    result = pytester.runpytest_subprocess(TIMER)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*CollectorError: cannot wait for CUDA: cuCtxSynchronize returned 700*"])


@pytest.mark.slow
def test_other_timers_do_not_load_the_cuda_timer(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_host(benchmark):
            benchmark.pedantic(len, args=([],), rounds=2)
            assert "pytest_opprof.timers" not in sys.modules
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
