"""A tracer such as coverage's does not make memory REGRESSED whose baseline was measured without it."""

import json
import sys

import pytest
from e2e.project import Project, Session

TESTS = """\
    import pytest

    MORE = 0
    pytestmark = pytest.mark.profile(profile_memory=True)

    def row(length):
        return [None] * length

    def rows():
        for length in (100, 1000):
            yield row(length)

    def test_nothing():
        pass

    def test_lists():
        for _ in range(1 + MORE):
            assert [len(each) for each in rows()] == [100, 1000]

    def test_methods():
        found = []
        for length in range(20 + MORE):
            found.append(row(length))
"""
# written in Python, so it allocates at each line
TRACER = """\
    import os
    import sys

    LINES = []

    def trace(frame, event, argument):
        LINES.append((frame.f_code.co_filename, frame.f_lineno, str(event)))
        return trace

    def pytest_sessionstart():
        if os.environ.get("TRACED"):
            sys.settrace(trace)

    def pytest_sessionfinish():
        sys.settrace(None)
"""
# Without this, the interpreter allocates line numbers and offsets for monitoring tools.
IS_CERTAIN = sys.version_info < (3, 12)


@pytest.mark.slow
@pytest.mark.parametrize("tracer", ["conftest", "coverage"])
def test_unchanged_memory_is_never_regressed(project: Project, tracer: str) -> None:
    if tracer == "coverage":
        pytest.importorskip("pytest_cov")
    project.write("conftest.py", TRACER)
    project.write("test_it.py", TESTS)

    def run(*arguments: str, traced: bool) -> Session:
        capture = ("--opprof-capture=ranges,memory-python", "--opprof-report=json:comparison.json")
        beside = ("--cov=.", "--cov-report=") if traced and tracer == "coverage" else ()
        env = {"TRACED": "1"} if traced and tracer == "conftest" else {}
        plugins = ("pytest_cov",) if tracer == "coverage" else ()
        return project.pytest(*capture, *beside, *arguments, env=env, plugins=plugins)

    def verdicts() -> dict[str, str]:
        document = json.loads((project.folder / "comparison.json").read_text())
        return {test["node_id"].partition("::")[2]: test["verdict"] for test in document["tests"]}

    assert run("--opprof-save=main", traced=False).exit_code == 0
    traced = run("--opprof-baseline=main", traced=True)
    told = f"trace function unknown -> {tracer}"
    for name, verdict in verdicts().items():
        # Under a tracer, Python 3.11 makes a method object for each call of a native method.
        is_certain = IS_CERTAIN and name != "test_methods"
        assert verdict in ({"pass"} if is_certain else {"pass", "inconclusive"}), name
    for failure in traced.failures.values():
        assert f"measured in another environment: {told}" in " ".join(failure.split())
    if len(traced.failures) < 3:
        same = f"opprof: measured in another environment, with the same values: {told} ("
        assert any(line.startswith(same) for line in traced.told)

    project.replace("test_it.py", "MORE = 0", "MORE = 1")
    more = run("--opprof-baseline=main", traced=True)
    assert more.exit_code == pytest.ExitCode.TESTS_FAILED
    worse = verdicts()
    assert (worse["test_lists"], worse["test_methods"]) == ("inconclusive", "inconclusive")


@pytest.mark.slow
@pytest.mark.skipif(not IS_CERTAIN, reason="Python 3.12 and later record calls otherwise")
def test_calls_and_memory_are_recorded_together(project: Project) -> None:
    """Before Python 3.12, calls are recorded by a profile function, for which the interpreter allocates."""
    project.write("test_it.py", TESTS)
    capture = "--opprof-capture=ranges,python,memory-python"
    saved = project.pytest("--opprof-save=main", capture)
    assert saved.result("test_nothing").totals["cpu_memory.allocations"].high == 0
    assert all(saved.result(f"test_{name}").unstable == () for name in ("nothing", "lists", "methods"))
    assert project.pytest("--opprof-baseline=main", capture).exit_code == 0
