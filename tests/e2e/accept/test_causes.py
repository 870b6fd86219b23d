"""Accepting all tests that regressed for one cause, and all causes, at once."""

import pytest
from e2e.accept.acceptances import REASON, accept
from e2e.project import INI, Project

SEVERAL = """\
    import pytest
    from pytest_opprof import record_function

    def shared(times):
        for _ in range(times):
            with record_function("work"):
                pass

    def alone(times):
        for _ in range(times):
            with record_function("other work"):
                pass

    @pytest.mark.profile
    @pytest.mark.parametrize("name", ["a b", "c"])
    def test_shared(name): shared(2)

    @pytest.mark.profile
    def test_alone(): alone(2)

    @pytest.mark.profile
    def test_nothing(): pass
"""


@pytest.fixture
def several(project: Project) -> Project:
    """A project with three tests that fail for two causes."""
    project.git("init", "-q", "-b", "main")
    project.write("test_it.py", SEVERAL)
    # with instructions, a test without ops would be compared too
    project.write("pytest.ini", INI + "opprof_instructions = off\n")
    project.commit()
    project.pytest("--opprof-save=main")
    project.replace("test_it.py", "shared(2)", "shared(3)")
    project.replace("test_it.py", "alone(2)", "alone(4)")
    return project


CAUSES = [
    "cause 1, 2 tests: test_it.py:16 in test_shared: work +1 a step",
    "    test_shared[[]a b]  3 ranges (+1)",
    "    test_shared[[]c]    3 ranges (+1)",
    '    intended? opprof accept --cause 1 --reason "..."',
    "cause 2, 1 test: test_it.py:19 in test_alone: other work +2 a step",
    "    test_alone  4 ranges (+2)",
    '    intended? opprof accept test_it.py::test_alone --reason "..."',
    'all of it intended? opprof accept --all --reason "..."',
    "1 test ran no op or range: nothing is compared",
    "3 regressed, 1 passed * nothing dropped",
]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_one_command_accepts_all_tests_of_a_cause(several: Project, workers: tuple[str, ...]) -> None:
    plugins = ("xdist",) if workers else ()
    if workers:
        pytest.importorskip("xdist")
    failed = several.pytest(*workers, "--opprof-baseline=main", "-vv", plugins=plugins)
    failed.lines.fnmatch_lines(
        [*CAUSES[:-1], "    test_it.py::test_nothing", CAUSES[-1]] if not workers else CAUSES[:4]
    )
    # Each command is printed once, in one test's section; the other section refers to it.
    sections = failed.stdout.partition("= opprof =")[0]
    assert sections.count('intended? opprof accept --cause 1 --reason "..."') == 1
    assert sections.count("intended? accept cause 1, see test_it.py::test_shared[") == 1
    assert sections.count('intended? opprof accept test_it.py::test_alone --reason "..."') == 1
    # A JUnit report shows each test on its own.
    assert "opprof accept 'test_it.py::test_shared[a b]' --reason" in failed.failures["test_shared[a b]"]

    done = accept(several, "--cause", "1", "--reason", REASON)
    assert done.returncode == 0
    head, *entries = done.stdout.splitlines()
    assert (
        head == "Accepted for 2 tests until the next baseline. Commit .opprof/accepted.json with the change"
    )
    assert sorted(entries) == [
        "    test_it.py::test_shared[a b]: ranges.count up to 3",
        "    test_it.py::test_shared[c]: ranges.count up to 3",
    ]
    once = several.pytest(*workers, "--opprof-baseline=main", plugins=plugins)
    assert {name for name, outcome in once.outcomes.items() if outcome != "passed"} == {"test_alone"}
    assert accept(several, "--all", "--reason", REASON).returncode == 0
    assert several.pytest(*workers, "--opprof-baseline=main", plugins=plugins).exit_code == 0
    several.replace("test_it.py", "shared(3)", "shared(4)")
    more = several.pytest(*workers, "--opprof-baseline=main", plugins=plugins)
    assert {name for name, outcome in more.outcomes.items() if outcome != "passed"} == {
        "test_shared[a b]",
        "test_shared[c]",
    }


@pytest.mark.slow
def test_causes_have_the_same_numbers_everywhere(several: Project) -> None:
    failed = several.pytest("--opprof-baseline=main", "--opprof-report=markdown:comment.md")
    titles = [line for line in failed.stdout.splitlines() if line.startswith("cause ")]
    assert len(titles) == 2
    comment = (several.folder / "comment.md").read_text().replace("\\", "").replace("`", "")
    compare = ("-m", "pytest_opprof.cli.main", "compare", "main", str(failed.document))
    done = several.python(*compare, "-o", "cmp.json")
    compared = [line for line in done.stdout.splitlines() if line.startswith("cause ")]
    # Two run files alone do not say which lines were edited.
    assert [line.partition(":")[0] for line in compared] == [line.partition(":")[0] for line in titles]
    command = 'opprof accept --comparison cmp.json --cause 1 --reason "..."'
    # In the section of the first test, and in the summary.
    assert done.stdout.count(f"intended? {command}") == 2
    shown = several.python("-m", "pytest_opprof.cli.main", "show", "cmp.json")
    assert [line for line in shown.stdout.splitlines() if line.startswith("cause ")] == compared
    for number, title in enumerate(titles, start=1):
        place = title.partition(": ")[2].partition(": ")[0]
        assert f"Cause {number}: {place}" in comment.replace("*", "")
    assert comment.count("opprof accept --cause 1") == 1


def test_quiet_session_names_the_failures(several: Project) -> None:
    failed = several.pytest("-q", "--opprof-baseline=main")
    assert [line for line in failed.told if "regressed" not in line] == [
        "opprof: cause 1, 2 tests: test_it.py:16 in test_shared: work +1 a step: test_shared[a b], test_shared[c]",
        "opprof: cause 2, 1 test: test_it.py:19 in test_alone: other work +2 a step: test_alone",
        "opprof: 1 test ran no op or range: nothing is compared (test_it.py::test_nothing)",
    ]


@pytest.mark.slow
def test_invalid_acceptances_are_one_sentence(several: Project) -> None:
    several.pytest("--opprof-baseline=main")

    def told(*words: str) -> str:
        done = accept(several, *words, "--reason", REASON)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        return done.stderr

    assert "--cause 3: there is no such cause: the comparison of" in told("--cause", "3")
    one_of = "opprof accept takes one of these: TEST, --cause N, or --all"
    assert one_of in told()
    assert one_of in told("--all", "--cause", "1")
    assert one_of in told("test_it.py::test_alone", "--all")
    # A run of some tests replaces the last comparison and has its own causes.
    several.pytest("--opprof-baseline=main", "-k", "alone")
    assert "--cause 2: there is no such cause" in told("--cause", "2")
    several.pytest("--opprof-baseline=main", "-k", "nothing")
    assert "nothing regressed and no test is missing in the comparison of" in told("--all")
    several.pytest("--opprof-baseline=main")
    several.commit()
    # Committing the measured code does not change it; the next commit does.
    assert accept(several, "test_it.py::test_alone", "--reason", REASON).returncode == 0
    several.commit()
    assert "Run the tests again, or name a comparison file: --comparison FILE" in told("--all")
