"""Random draws of measured tests are equal in each session and call; other tests are not affected."""

import gzip
import random
from pathlib import Path

import pytest
from e2e.project import Project, Session

DRAWN = """\
    import random
    import pytest
    from pytest_opprof import record_function

    random.seed(5)

    def times(count):
        for _ in range(count):
            with record_function("work"):
                pass

    @pytest.fixture
    def data():
        return random.randrange(1000)

    @pytest.fixture
    def seeded():
        random.seed(7)

    @pytest.mark.profile
    def test_call():
        print("drawn", random.random())
        times(random.randrange(1000))

    @pytest.mark.profile(warmup=0, active=2)
    def test_seeds_itself(seeded):
        drawn = random.random()
        times(int(1000 * drawn))
        assert drawn == random.Random(7).random()

    @pytest.mark.profile
    def test_fixture(data):
        print("drawn", data, random.random())
        times(data)

    @pytest.mark.profile
    def test_steps(opprof):
        for _ in range(4):
            times(random.randrange(1000))
            opprof.step()

    def test_not_measured():
        print("drawn", random.random())
    """
MEASURED = ["test_call", "test_fixture", "test_steps", "test_seeds_itself"]


def work(project: Project, *arguments: str) -> dict[str, int | None]:
    """How often each test ran the range in a step; None if its steps differ."""
    session = project.pytest(*arguments)
    assert session.exit_code == 0
    rows = {name: session.result(name).ops for name in MEASURED}
    found = {name: next(row.count for row in rows[name] if row.name == "work") for name in MEASURED}
    return {name: count.low if count.low == count.high else None for name, count in found.items()}


def text_of(trace: Path) -> str:
    content = trace.read_bytes()
    return (gzip.decompress(content) if trace.suffix == ".gz" else content).decode()


@pytest.mark.slow
def test_each_session_and_each_call_draws_the_same(project: Project) -> None:
    project.write("test_it.py", DRAWN.replace("random.seed(5)", ""))
    first = work(project)
    assert first["test_call"] is not None
    assert first["test_fixture"] is not None
    assert first["test_steps"] is None  # its steps are parts of one call
    others = [work(project), work(project, "--opprof-timed-steps=3"), work(project, "--opprof-seed=1")]
    assert [other["test_call"] == first["test_call"] for other in others] == [True, True, False]
    assert {other["test_seeds_itself"] for other in others} == {first["test_seeds_itself"]}


@pytest.mark.slow
def test_first_call_and_other_tests_draw_as_without_the_plugin(project: Project) -> None:
    project.write("test_it.py", DRAWN)

    def drawn(*arguments: str) -> list[str]:
        told = project.pytest("-s", *arguments, writes_run=False).stdout.splitlines()
        return [line[line.index("drawn") :] for line in told if "drawn" in line]

    call, fixture, last = drawn("--opprof=off")
    calls = drawn()
    # four calls of the schedule, and two counted ones
    assert (calls[0], calls[6], calls[-1]) == (call, fixture, last)
    assert len(set(calls[1:6])) == len(set(calls[6:12])) == 1
    assert calls[1] != call


@pytest.mark.slow
def test_unseeded_test_data_is_repeatable(project: Project) -> None:
    project.write("test_it.py", DRAWN.replace("random.seed(5)", ""))
    project.pytest("--opprof-save=main")
    same = project.pytest("--opprof-baseline=main", "-k", "call or seeds")
    assert same.exit_code == 0
    same.lines.fnmatch_lines(["2 passed * nothing dropped*"])
    off = project.pytest("--opprof-baseline=main", "--opprof-seed=off")
    assert off.outcomes["test_call"] != "passed"


@pytest.mark.slow
def test_a_benchmark_draws_the_same_however_often_it_was_timed(project: Project) -> None:
    pytest.importorskip("pytest_benchmark")
    project.write(
        "test_it.py",
        """\
        import random
        import pytest
        from pytest_opprof import record_function

        def draw():
            for _ in range(random.randrange(100)):
                with record_function("work"):
                    pass

        @pytest.mark.profile
        def test_plain(benchmark):
            benchmark(draw)

        @pytest.mark.profile
        def test_made(benchmark):
            benchmark.pedantic(lambda n: [draw() for _ in range(n)], setup=lambda: ((random.randrange(9),), {}))
        """,
    )
    project.pytest("--opprof-save=main", plugins=("pytest_benchmark.plugin",))
    same = project.pytest("--opprof-baseline=main", plugins=("pytest_benchmark.plugin",))
    assert same.exit_code == 0
    same.lines.fnmatch_lines(["2 passed * nothing dropped"])


WHICHEVER_IS_FIRST = """\
    import random
    import pytest
    from pytest_opprof import record_function

    pytestmark = pytest.mark.profile

    def work():
        for _ in range(random.randrange(1000)):
            with record_function("work"):
                pass

    @pytest.fixture(scope="session")
    def model():
        random.seed(5)

    @pytest.fixture(scope="module")
    def late():
        random.seed(6)

    @pytest.fixture
    def asks(request):
        request.getfixturevalue("late")

    @pytest.fixture
    def seeds():
        random.seed(7)

    @pytest.fixture
    def seeds_and_asks(request, seeds):
        request.getfixturevalue("late")

    class TestModel:
        def test_first(self, model):
            work()

        def test_second(self, model):
            work()

    class TestLate:
        def test_first(self, asks):
            work()

        def test_second(self, asks):
            work()

    class TestLateSeeded:
        def test_first(self, seeds_and_asks):
            work()

        def test_second(self, seeds_and_asks):
            work()

    class TestSetupClass:
        def setup_class(self):
            random.seed(8)

        def test_first(self):
            work()

        def test_second(self):
            work()

    class TestSetupMethodSeeded:
        def setup_method(self):
            random.seed(7)

        def test_first(self):
            work()

        def test_second(self, model):
            work()

    class TestSeeded:
        def test_first(self, seeds):
            pass

        def test_second(self, seeds):  # the generator is already in the state that the fixture leaves
            work()
    """


def draw(seed: int) -> int:
    return random.Random(seed).randrange(1000)  # noqa: S311  # as the tests


def drawn(session: Session) -> dict[str, set[int]]:
    """How often each test ran the range in its steps."""
    return {
        test.node_id.partition("::")[2]: {row.count.low, row.count.high}
        for test in session.run.tests
        for row in test.ops
        if row.name == "work"
    }


@pytest.mark.slow
@pytest.mark.parametrize("chosen", ["first or second", "second", "(Late or Seeded) and second"])
def test_draws_do_not_depend_on_the_test_that_runs_first(project: Project, chosen: str) -> None:
    project.write("test_it.py", WHICHEVER_IS_FIRST)
    found = drawn(project.pytest("-k", chosen))
    assert found
    assert found == {test: {draw(7 if "Seeded" in test else 0)} for test in found}


RESEEDED = """\
    import os
    import random
    import pytest

    # as pytest-randomly
    def pytest_runtest_setup():
        random.seed(os.environ["OF_SESSION"])

    def pytest_runtest_call():
        random.seed(os.environ["OF_SESSION"])
    """


@pytest.mark.slow
@pytest.mark.parametrize("of_session", ["1", "2"])
def test_a_plugins_seed_for_the_session_is_not_a_fixtures(project: Project, of_session: str) -> None:
    project.write("test_it.py", WHICHEVER_IS_FIRST)
    project.write("conftest.py", RESEEDED)
    found = drawn(project.pytest("-k", "Model or Setup", env={"OF_SESSION": of_session}))
    assert found == {test: {draw(7 if "Seeded" in test else 0)} for test in found}


RERUN = """\
    import random
    import pytest
    from pytest_opprof import record_function

    CALLS = []

    @pytest.mark.profile
    def test_it():
        CALLS.append(random.random())
        assert len(CALLS) > 1
        for _ in range(random.randrange(1000)):
            with record_function("work"):
                pass
    """


@pytest.mark.slow
def test_a_rerun_draws_the_same(project: Project) -> None:
    pytest.importorskip("pytest_rerunfailures")
    project.write("test_it.py", RERUN)
    rerun = project.pytest("--reruns=1", plugins=("rerunfailures",))
    rerun.lines.fnmatch_lines(["*1 passed, 1 rerun in *"])
    project.replace("test_it.py", "assert len(CALLS) > 1", "")
    assert drawn(rerun) == drawn(project.pytest())


LIBRARIES = """\
    import numpy, pytest, torch

    CALLS = []

    @pytest.mark.profile(with_stack=True)
    def test_it():
        CALLS.append((numpy.random.rand(), torch.rand(()).item()))

    def test_after():
        assert len(CALLS) == 4 + 2  # of these the instructions are counted
        assert len({*CALLS[1:]}) == 1
        assert CALLS[0] != CALLS[1] != (numpy.random.rand(), torch.rand(()).item())
    """


@pytest.mark.slow
def test_numpy_and_torch_draw_the_same_and_no_trace_shows_how(project: Project) -> None:
    pytest.importorskip("torch")
    project.write("test_it.py", LIBRARIES)
    seeded = project.pytest("--opprof-traces=traces")
    assert seeded.exit_code == 0
    traces = sorted((project.folder / "traces").rglob("*.json*"))
    assert traces
    assert not any("seeds.py" in text_of(path) for path in traces)
    assert project.pytest("--opprof-seed=off").outcomes["test_after"] == "failure"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["random", "numpy", "torch"])
def test_replaced_generators_are_left_alone(project: Project, name: str) -> None:
    project.write(
        "test_it.py",
        f"""\
        import sys, types
        import pytest

        @pytest.mark.profile
        def test_it(monkeypatch):
            monkeypatch.setitem(sys.modules, "{name}", types.SimpleNamespace(random=len, default_generator=1))
        """,
    )
    assert project.pytest().outcomes == {"test_it": "passed"}


@pytest.mark.parametrize("value", ["-1", "yes", str(2**32), ""])
def test_invalid_seed_is_one_sentence(project: Project, value: str) -> None:
    project.write("test_it.py", DRAWN)
    refused = project.pytest(f"--opprof-seed={value}", writes_run=False)
    assert refused.exit_code == pytest.ExitCode.USAGE_ERROR
    assert f"--opprof-seed={value}: it must be a number from 0 to 4294967295, or off" in refused.stderr
