"""Tests marked by options: which ones, with which arguments, and in every way of running tests."""

import pytest
from e2e.project import Project

from pytest_opprof.results.files import read_run

TESTS = """\
    import pytest
    from pytest_opprof import record_function

    def work(times=1):
        for _ in range(times):
            with record_function("work"):
                pass

    def test_alpha(): work()
    def test_beta(): work()

    @pytest.mark.parametrize("size", [1, 2])
    def test_sized(size): work()

    class TestGroup:
        def test_alpha(self): work()

    @pytest.mark.profile(active=2)
    def test_marked(): work()
"""


@pytest.fixture
def suite(project: Project) -> Project:
    for name in ("models/test_net.py", "test_other.py"):
        project.write(name, TESTS)
    project.write(
        "test_drawn.py",
        "from hypothesis import given, strategies as st\n@given(st.none())\ndef test_any(x): pass\n",
    )
    return project


def measured(project: Project, *arguments: str) -> dict[str, int]:
    """The tests that were measured, and the active steps of each."""
    run = project.pytest(*arguments).run
    return {test.node_id: test.steps for test in run.tests}


IN_NET = [
    "models/test_net.py::TestGroup::test_alpha",
    "models/test_net.py::test_alpha",
    "models/test_net.py::test_beta",
    "models/test_net.py::test_marked",
    "models/test_net.py::test_sized[1]",
    "models/test_net.py::test_sized[2]",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lines", "chosen"),
    [
        (["models"], IN_NET),
        (["./models/"], IN_NET),
        (["models/test_net.py"], IN_NET),
        (["models/test_net.py::test_sized"], IN_NET[-2:]),
        (["models/test_net.py::test_sized[2]"], IN_NET[-1:]),
        (["models/test_net.py::test_si"], []),
        (["models/*::test_[ab]*"], IN_NET[:3]),
        (["-k alpha"], [*IN_NET[:2], "test_other.py::TestGroup::test_alpha", "test_other.py::test_alpha"]),
        (['-k "alpha and TestGroup"'], [IN_NET[0], "test_other.py::TestGroup::test_alpha"]),
        (["models", "!-k sized", "!*alpha"], [IN_NET[2]]),
        (["models", "!models", "*net.py::test_beta"], [IN_NET[2]]),
    ],
    ids=str,
)
def test_mark_options_select_tests(suite: Project, lines: list[str], chosen: list[str]) -> None:
    found = measured(suite, *(f"--opprof-mark={line}" for line in lines))
    by_code = {"models/test_net.py::test_marked", "test_other.py::test_marked"}
    assert sorted(found) == sorted({*chosen, *by_code})


@pytest.mark.slow
def test_whole_project_is_marked_except_unmarkable_items(suite: Project) -> None:
    found = measured(suite, "--opprof-mark=.")
    assert len(found) == 12
    assert not any("drawn" in node_id for node_id in found)


@pytest.mark.slow
def test_ini_lines_mark_tests_and_code_wins(suite: Project) -> None:
    suite.replace(
        "pytest.ini",
        "[pytest]",
        "[pytest]\nopprof_profile = active=4\nopprof_mark =\n    models\n    models/test_net.py::test_beta  warmup=0, active=5",
    )
    found = measured(suite, "models")
    assert found["models/test_net.py::test_alpha"] == 4
    assert found["models/test_net.py::test_beta"] == 5
    assert found["models/test_net.py::test_marked"] == 2
    assert measured(suite, "models", "--opprof-mark=!models") == {"models/test_net.py::test_marked": 2}


@pytest.mark.slow
def test_limits_of_the_suite_hold_where_a_marker_has_none(suite: Project) -> None:
    suite.write(
        "test_other.py",
        TESTS + "\n    @pytest.mark.profile(limits={'work.count': 9})\n    def test_own(): work(5)\n"
        "    def test_much(): work(5)\n",
    )
    session = suite.pytest("test_other.py", "--opprof-mark=test_other.py", "--opprof-limits=work.count<=4")
    assert session.failures.keys() == {"test_much"}
    equal = suite.pytest("test_other.py", "--opprof-mark=test_other.py", "--opprof-limits=work.count=4")
    assert equal.failures.keys() == {"test_much"}


def test_tests_marked_by_ini_are_saved_and_gated(suite: Project) -> None:
    suite.replace("pytest.ini", "[pytest]", "[pytest]\nopprof_mark = models")
    saved = suite.pytest("--opprof-save=main")
    assert saved.exit_code == 0
    stored = read_run(suite.stored()[-1])
    assert {test.processes for test in stored.tests if "models" in test.node_id} == {2}
    suite.replace("models/test_net.py", "def test_beta(): work()", "def test_beta(): work(2)")
    session = suite.pytest("--opprof-baseline=main")
    assert (session.exit_code, list(session.failures)) == (1, ["test_beta"])


@pytest.mark.slow
@pytest.mark.parametrize("option", [("--opprof-mark=models",), ("--opprof-mark", "models")], ids=len)
def test_tests_marked_by_options_are_certified(suite: Project, option: tuple[str, ...]) -> None:
    saved = suite.pytest("--opprof-save=main", *option, "--opprof-profile=active=2", "models")
    assert saved.exit_code == 0
    assert not any("not certified" in line for line in saved.told)
    stored = read_run(suite.stored()[-1])
    assert {(test.processes, test.steps) for test in stored.tests} == {(2, 2)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--opprof-mark=!", "names no test: write a path, a node id or -k EXPRESSION"),
        ("--opprof-mark=. warmup", "'warmup' are not arguments of the marker; write them as in Python"),
        ("--opprof-mark=. f(x)", "'f(x)' are not arguments of the marker"),
        ("--opprof-mark=. warmpu=1", "unknown argument 'warmpu' (did you mean 'warmup'?)"),
        ("--opprof-mark=!. warmup=1", "excludes tests, so it cannot have arguments: warmup=1"),
        ('--opprof-mark=-k "a and"', "is not a -k expression"),
        ("--opprof-profile=active", "opprof_profile: 'active' are not arguments of the marker"),
        ("--opprof-profile=actve=1", "opprof_profile: unknown argument 'actve'"),
        ("--opprof-limits=no_snyc", "unknown preset 'no_snyc' in opprof_limits (did you mean 'no_sync'?)"),
        ("--opprof-limits=work.cuont=1", "opprof_limits"),
    ],
)
def test_invalid_values_are_one_sentence(suite: Project, option: str, sentence: str) -> None:
    session = suite.pytest(option)
    assert session.exit_code == pytest.ExitCode.USAGE_ERROR
    assert sum(sentence in line for line in session.told) == 1


@pytest.mark.slow
def test_an_option_that_matches_no_test_is_named(suite: Project) -> None:
    session = suite.pytest("--opprof-mark=test_net.py", "-k", "alpha")
    assert any("--opprof-mark=test_net.py matches no test here" in line for line in session.told)
    session = suite.pytest("--opprof-mark=models", "--opprof-mark=!test_other.py", "-k", "alpha")
    assert not any("matches no test" in line for line in session.told)


ONCE_ONLY = """\
    import pytest, unittest
    from pytest_opprof import record_function

    class TestGraph:
        def setup_method(self):
            self.nodes = [1]

        def test_removes(self):
            with record_function("work"):
                self.nodes.remove(1)

        def test_reads(self):
            with record_function("work"):
                assert len(self.nodes) == 1

    class TestParts(unittest.TestCase):
        nodes = [1]
        def test_parts(self):
            with self.subTest("one"):
                self.nodes.remove(1)
    """


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_unrepeatable_tests_marked_by_an_option_are_skipped(
    project: Project, workers: tuple[str, ...]
) -> None:
    if workers:
        pytest.importorskip("xdist")
    plugins = ("xdist",) if workers else ()
    project.write("test_it.py", ONCE_ONLY)
    project.pytest("--opprof-mark=.", "--opprof-save=main")
    again = project.pytest(*workers, "--opprof-mark=.", "--opprof-baseline=main", "-v", plugins=plugins)
    assert again.exit_code == 0
    again.lines.fnmatch_lines_random(
        [
            "2 tests cannot be repeated: nothing is compared",
            "    test_it.py::TestGraph::test_removes: cannot be repeated: call 2 raised ValueError. *",
            "1 passed * nothing dropped",
        ]
    )
    left = again.result("test_removes")
    assert left.is_left_alone
    assert not left.is_usable

    # A marker in the code is intended, and a test with a baseline keeps its gate.
    project.replace("test_it.py", "def test_removes", "@pytest.mark.profile\n    def test_removes")
    failed = project.pytest(*workers, "--opprof-mark=.", "--opprof-baseline=main", plugins=plugins)
    assert failed.exit_code == 1
    failed.lines.fnmatch_lines(["*test_removes: ERROR: cannot be repeated: call 2 *"])
    project.replace("test_it.py", "@pytest.mark.profile\n    def test_removes", "def test_removes")
    project.replace("test_it.py", "assert len(self.nodes) == 1", "assert self.nodes.pop() == 1")
    failed = project.pytest(*workers, "--opprof-mark=.", "--opprof-baseline=main", plugins=plugins)
    assert failed.exit_code == 1
    failed.lines.fnmatch_lines(["*test_reads: ERROR: cannot be repeated: call 2 *"])

    # Once it can be repeated, it counts as new.
    project.replace("test_it.py", "self.nodes.remove(1)", "assert 1 in self.nodes")
    project.replace("test_it.py", "assert self.nodes.pop() == 1", "assert len(self.nodes) == 1")
    mended = project.pytest(*workers, "--opprof-mark=.", "--opprof-baseline=main", plugins=plugins)
    assert mended.exit_code == 0
    mended.lines.fnmatch_lines(["2 new, 1 passed*"])
