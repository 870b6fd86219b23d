"""Random draws of measured tests are equal in each session and call; other tests are not affected."""

import gzip
from pathlib import Path

import pytest
from e2e.project import Project

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


def test_each_session_and_each_call_draws_the_same(project: Project) -> None:
    project.write("test_it.py", DRAWN.replace("random.seed(5)", ""))
    first = work(project)
    assert first["test_call"] is not None
    assert first["test_fixture"] is not None
    assert first["test_steps"] is None  # its steps are parts of one call
    others = [work(project), work(project, "--opprof-timed-steps=3"), work(project, "--opprof-seed=1")]
    assert [other["test_call"] == first["test_call"] for other in others] == [True, True, False]
    assert {other["test_seeds_itself"] for other in others} == {first["test_seeds_itself"]}


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


def test_unseeded_test_data_is_repeatable(project: Project) -> None:
    project.write("test_it.py", DRAWN.replace("random.seed(5)", ""))
    project.pytest("--opprof-save=main")
    same = project.pytest("--opprof-baseline=main", "-k", "call or seeds")
    assert same.exit_code == 0
    same.lines.fnmatch_lines(["2 passed * nothing dropped*"])
    off = project.pytest("--opprof-baseline=main", "--opprof-seed=off")
    assert off.outcomes["test_call"] != "passed"


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


def test_numpy_and_torch_draw_the_same_and_no_trace_shows_how(project: Project) -> None:
    pytest.importorskip("torch")
    project.write("test_it.py", LIBRARIES)
    seeded = project.pytest("--opprof-traces=traces")
    assert seeded.exit_code == 0
    traces = sorted((project.folder / "traces").rglob("*.json*"))
    assert traces
    assert not any("seeds.py" in text_of(path) for path in traces)
    assert project.pytest("--opprof-seed=off").outcomes["test_after"] == "failure"


@pytest.mark.parametrize("value", ["-1", "yes", str(2**32), ""])
def test_invalid_seed_is_one_sentence(project: Project, value: str) -> None:
    project.write("test_it.py", DRAWN)
    refused = project.pytest(f"--opprof-seed={value}", writes_run=False)
    assert refused.exit_code == pytest.ExitCode.USAGE_ERROR
    assert f"--opprof-seed={value}: it must be a number from 0 to 4294967295, or off" in refused.stderr
