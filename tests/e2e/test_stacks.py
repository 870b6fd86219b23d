"""Stacks in a user's project: a failed gate names the line, and counts stay unchanged."""

import gzip
import textwrap

import pytest
from e2e.project import Project, Session

from pytest_opprof.kinds import OpKind

PIPELINE = """\
    from pytest_opprof import record_function

    def load(n):
        for _ in range(n):
            with record_function("load"):
                sorted([2, 1])

    def transform():
        with record_function("load"):
            pass
"""
CLASSES = """
    class Loader:
        def read(self):
            for _ in range(2):
                (lambda: 1)()
            (lambda: 2)()
            (lambda: 3)()
"""
TESTS = """\
    import pytest
    from pipeline import load, transform

    @pytest.mark.profile(warmup=0, active=2, with_stack=True)
    def test_pipeline():
        load(3)
        transform()
"""


@pytest.fixture
def pipeline(project: Project) -> Project:
    project.write("pipeline.py", PIPELINE)
    project.write("test_it.py", TESTS)
    return project


@pytest.mark.slow
def test_a_failed_gate_names_the_line_that_calls_more(pipeline: Project) -> None:
    assert pipeline.pytest("--opprof-save=main").exit_code == 0
    pipeline.replace(
        "pipeline.py", "        pass\n", "        pass\n    with record_function('load'):\n        pass\n"
    )
    session = pipeline.pytest("--opprof-baseline=main")
    assert session.exit_code == 1
    line = (
        pipeline.folder.joinpath("pipeline.py")
        .read_text()
        .splitlines()
        .index("    with record_function('load'):")
        + 1
    )
    session.lines.fnmatch_lines([f"pipeline.py:{line} in transform", "  load *4 -> *5 *+1"])


@pytest.mark.slow
def test_cpp_stacks_are_in_the_trace_and_no_ops(pipeline: Project) -> None:
    without = pipeline.pytest().result("test_pipeline")
    pipeline.replace("test_it.py", "with_stack=True", "with_stack='cpp'")
    session = pipeline.pytest("--opprof-traces=traces")
    with_stacks = session.result("test_pipeline")
    assert "cpp" in with_stacks.sources
    assert "python" not in with_stacks.sources
    assert without.totals["ranges.count"] == with_stacks.totals["ranges.count"]
    (trace,) = pipeline.folder.joinpath("traces").iterdir()
    assert b"C++ stack" in gzip.decompress(trace.read_bytes())


@pytest.mark.slow
def test_calls_are_rows_but_no_ops(pipeline: Project) -> None:
    with_calls = pipeline.pytest().result("test_pipeline")
    pipeline.replace("test_it.py", ", with_stack=True", "")
    without = pipeline.pytest().result("test_pipeline")

    def counts(kind: OpKind) -> dict[str, int]:
        return {row.name: row.count.total for row in with_calls.ops if row.kind is kind}

    assert counts(OpKind.CALL)["pipeline.py: load"] == 2
    assert counts(OpKind.CALL)["<built-in function sorted>"] == 6
    assert "python" in with_calls.sources
    assert with_calls.totals["ranges.count"] == without.totals["ranges.count"]
    kept = [(row.name, row.count) for row in with_calls.ops if row.kind is not OpKind.CALL]
    assert sorted(kept) == sorted((row.name, row.count) for row in without.ops)
    assert [row.source for row in with_calls.ops if row.name == "load"] == ["load, pipeline.py:5"]
    assert [row.source for row in without.ops if row.name == "load"] == ["load, pipeline.py:5"]


def test_calls_may_be_asked_for_on_the_command_line(pipeline: Project) -> None:
    pipeline.replace("test_it.py", ", with_stack=True", "")
    session = pipeline.pytest("--opprof-capture=ranges,python")
    assert any(row.kind is OpKind.CALL for row in session.result("test_pipeline").ops)
    assert any("Python calls" in line for line in session.stdout.splitlines())


@pytest.mark.slow
def test_a_run_with_calls_compares_with_one_without(pipeline: Project) -> None:
    pipeline.replace("test_it.py", ", with_stack=True", "")
    assert pipeline.pytest("--opprof-save=main").exit_code == 0
    assert pipeline.pytest("--opprof-capture=ranges,ops,python", "--opprof-baseline=main").exit_code == 0


@pytest.mark.slow
def test_time_shared_by_call_and_range_is_subtracted_once(project: Project) -> None:
    """As torch's optimizers do: the range starts in one call and ends in another."""
    project.write(
        "test_it.py",
        """\
        import pytest
        from pytest_opprof import record_function

        def work():
            sum(range(20_000))

        class Scope:
            def __enter__(self):
                self.range = record_function("scope")
                self.range.__enter__()
                work()

            def __exit__(self, *error):
                work()
                self.range.__exit__(None, None, None)

        def caller():
            with Scope():
                work()

        @pytest.mark.profile(with_stack=True)
        def test_it():
            caller()
        """,
    )
    session = project.pytest("--opprof-save=main")
    assert session.exit_code == 0
    test = session.result("test_it")
    (caller,) = (op for op in test.ops if op.name == "test_it.py: caller")
    (scope,) = (op for op in test.ops if op.name == "scope")
    assert caller.self_cpu_time_total_ns.low >= 0
    assert caller.self_cpu_time_total_ns.high < scope.cpu_time_total_ns.low
    assert all(node.self_ns >= 0 for node in test.tree)


@pytest.mark.slow
def test_a_comment_above_a_function_changes_no_row(pipeline: Project) -> None:
    """For a gate on calls, of a function of the file and of a method."""
    pipeline.write("pipeline.py", PIPELINE)
    pipeline.write("pipeline.py", (pipeline.folder / "pipeline.py").read_text() + textwrap.dedent(CLASSES))
    pipeline.replace("test_it.py", "transform()\n", "transform()\n    Loader().read()\n")
    pipeline.replace("test_it.py", "import load,", "import Loader, load,")
    gate = "--opprof-gate=pipeline.py: *.count=exact"
    saved = pipeline.pytest("--opprof-save=main", gate)
    pipeline.write("pipeline.py", "# A comment.\n" + (pipeline.folder / "pipeline.py").read_text())
    session = pipeline.pytest("--opprof-baseline=main", gate)
    assert session.exit_code == 0, session.stdout

    def calls(session: Session) -> dict[str, int]:
        rows = session.result("test_pipeline").ops
        return {
            row.name: row.count.low
            for row in rows
            if row.kind is OpKind.CALL and row.name.startswith("pipeline")
        }

    expected = {
        "pipeline.py: load": 1,
        "pipeline.py: transform": 1,
        "pipeline.py: Loader.read": 1,
        "pipeline.py: Loader.read.<locals>.<lambda>": 4,
    }
    assert calls(saved) == calls(session) == expected
    pipeline.replace("pipeline.py", "_ in range(2)", "_ in range(3)")
    more = pipeline.pytest("--opprof-baseline=main", gate)
    assert more.exit_code == 1
    more.lines.fnmatch_lines(["*pipeline.py: Loader.read.<locals>.<lambda>*4*5*"])
