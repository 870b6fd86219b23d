"""Projects whose marked tests use a benchmark fixture, and sessions that time them quickly."""

BENCHMARK = ("benchmark",)
QUICK = ("--benchmark-max-time=0.001", "--benchmark-min-rounds=2", "--benchmark-warmup=off")
WORK = """\
    import pytest
    from pytest_opprof import record_function
    from pytest_opprof.capture.collector import Collector

    def recording():
        return Collector.instance().recording

    def work(times=1):
        for _ in range(times):
            with record_function("work"):
                pass
        return times

"""


GATED = (
    WORK
    + """\
    @pytest.mark.profile
    def test_grows(benchmark, request):
        calls = []
        benchmark(lambda: (calls.append(1), work(2)))
        with open(request.config.rootpath / "calls.log", "a") as log:
            print(len(calls), file=log)

    @pytest.mark.profile
    def test_stays(benchmark):
        benchmark(work, 2)

    @pytest.mark.profile
    def test_plain():
        work()
"""
)
