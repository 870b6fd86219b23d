"""Profiled tests that use other profilers, tracers and debuggers: theirs and ours both work."""

import sys

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project, Session

from pytest_opprof.results.samples import Samples

pytestmark = pytest.mark.slow

TESTS = """\
    import cProfile, faulthandler, os, pstats, sys, tempfile
    import pytest
    from pytest_opprof import record_function

    pytestmark = pytest.mark.profile(warmup=1, active=2, with_stack="python" in os.environ["SOURCES"])

    def inner():
        pass

    def work():
        with record_function("work"):
            inner()

    def test_cprofile():
        work()
        with cProfile.Profile() as profiler:
            work()
        work()
        assert any(name == "inner" for _, _, name in pstats.Stats(profiler).stats)

    def test_profile_function():
        seen, before = set(), sys.getprofile()
        work()
        sys.setprofile(lambda frame, event, argument: seen.add(frame.f_code.co_name))
        work()
        sys.setprofile(before)
        work()
        assert "inner" in seen

    def test_trace_function():
        seen, before = set(), sys.gettrace()
        work()
        sys.settrace(lambda frame, event, argument: seen.add(frame.f_code.co_name))
        work()
        sys.settrace(before)
        work()
        assert "inner" in seen

    def test_viztracer(tmp_path):
        viztracer = pytest.importorskip("viztracer")
        work()
        with viztracer.VizTracer(verbose=0, output_file=str(tmp_path / "trace.json")) as tracer:
            work()
        work()
        tracer.parse()
        assert any(event["name"].startswith("inner ") for event in tracer.data["traceEvents"])

    def test_coverage():
        coverage = pytest.importorskip("coverage")
        measured = coverage.Coverage(data_file=None, include=[__file__])
        work()
        with measured.collect():
            work()
        work()
        assert measured.get_data().lines(__file__)

    def test_faulthandler():
        with tempfile.TemporaryFile() as file:
            work()
            faulthandler.dump_traceback(file)
            faulthandler.dump_traceback_later(600, file=file)
            work()
            faulthandler.cancel_dump_traceback_later()
            work()
            file.seek(0)
            assert b"in test_faulthandler" in file.read()

    def test_torch_profiler():
        torch = pytest.importorskip("torch")
        work()
        with torch.profiler.profile() as profiler:
            work()
            torch.ones(2) + 1
        work()
        assert "aten::add" in {row.key for row in profiler.key_averages()}
"""
# Python 3.11 has a single profile function, and these tools replace ours.
TAKES_THE_PROFILE_FUNCTION = {"test_cprofile", "test_profile_function", "test_viztracer"}
TOOLS = [
    *("test_cprofile", "test_profile_function", "test_trace_function", "test_viztracer"),
    *("test_coverage", "test_faulthandler", "test_torch_profiler"),
]


@pytest.fixture(
    scope="module",
    params=[pytest.param("ranges and ops", marks=pytest.mark.slow), "ranges, ops and python calls"],
)
def beside(request: pytest.FixtureRequest, make_project: MakeProject) -> Session:
    """A session of tests that use other tools, with faulthandler enabled for the whole of pytest."""
    project: Project = make_project("beside")
    project.write("test_it.py", TESTS)
    variables = {"SOURCES": request.param, "OPPROF_TESTS_ALLOW_TORCH_PROFILER": "beside"}
    return project.pytest("-o", "faulthandler_timeout=600", env=variables)


def python_is_recorded(session: Session) -> bool:
    return any("python" in test.sources for test in session.run.tests)


@pytest.mark.parametrize("name", TOOLS)
def test_tool_in_a_test_works_without_lost_ranges(beside: Session, name: str) -> None:
    if beside.outcomes[name] == "skipped":
        pytest.skip("the tool is not installed")
    assert beside.outcomes[name] == "passed", beside.failures.get(name)
    test = beside.result(name)
    assert test.measurement.reason == ""
    (work,) = (op for op in test.ops if op.name == "work")
    assert work.count == Samples.constant(3, steps=2)
    if name == "test_torch_profiler":
        assert {op.name for op in test.ops} >= {"aten::ones", "aten::add"}


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring has room for all")
@pytest.mark.parametrize("name", TOOLS)
def test_python_calls_lost_to_a_tool_are_reported(beside: Session, name: str) -> None:
    test = beside.result(name)
    lost = python_is_recorded(beside) and name in TAKES_THE_PROFILE_FUNCTION
    if beside.outcomes[name] == "skipped":
        pytest.skip("the tool is not installed")
    sentence = "Python calls were recorded only in part: cProfile, viztracer or sys.setprofile took a thread"
    assert any(reason.startswith(sentence) for reason in test.unheard.values()) == lost
    assert ("python" in test.sources) == (python_is_recorded(beside) and not lost)
    assert any(line.startswith(f"opprof: {test.node_id}: {sentence}") for line in beside.told) == lost
