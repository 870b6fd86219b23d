"""Growth with a size: too fast growth breaks its limit, and the growing function is named."""

import pytest
from e2e.project import Project

WORK = """\
    def searched(n):
        known = []
        for i in range(n):
            if not any(i == other for other in known):
                known.append(i)
        return known

    def counted(n):
        return [i for i in range(n)]
"""
TESTS = """\
    import pytest
    from work import counted, searched

    @pytest.mark.profile(size="n", limits=[{"python.scaling": "<= 1.2"}])
    @pytest.mark.parametrize("n", [100, 200, 400])
    @pytest.mark.parametrize("work", [counted, searched], ids=["counted", "searched"])
    def test_grows(work, n):
        work(n)
"""


@pytest.fixture
def growing(project: Project) -> Project:
    project.write("work.py", WORK)
    project.write("test_it.py", TESTS)
    return project


@pytest.mark.slow
def test_work_that_grows_too_fast_fails_at_its_largest_size(growing: Project) -> None:
    session = growing.pytest("--opprof-save=main", env={"COLUMNS": "300"})
    assert set(session.failures) == {"test_grows[searched-400]"}
    section = session.failures["test_grows[searched-400]"]
    assert "python.scaling is 2.0 in each step, but the limit is <= 1.2" in section
    assert "in searched.<locals>.<genexpr>, work.py: n^2.00" in section
    (quadratic,) = [session.result(name).totals for name in session.failures]
    assert 1_980 <= quadratic["python.scaling"].low <= 2_000
    linear = session.result("test_grows[counted-400]").totals["python.scaling"].low
    assert 950 <= linear <= 1_000
    assert "python.scaling" not in session.result("test_grows[searched-200]").totals


def test_a_size_alone_cannot_be_judged(growing: Project) -> None:
    session = growing.pytest("-k", "counted and 400", env={"COLUMNS": "300"})
    assert session.exit_code == 1
    assert "only n=400 was counted in this process" in session.stdout


@pytest.mark.slow
def test_the_last_size_is_that_of_the_final_order(growing: Project) -> None:
    failed = growing.pytest("-k", "searched")
    assert set(failed.failures) == {"test_grows[searched-400]"}
    growing.replace("work.py", "any(i == other for other in known)", "False")
    session = growing.pytest("-k", "searched", "--ff")
    assert session.exit_code == 0
    assert list(session.outcomes) == [f"test_grows[searched-{n}]" for n in (400, 100, 200)]
    assert "python.scaling" in session.result("test_grows[searched-200]").totals


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('size="n"', 'size="m"', "size='m' is not a parameter of the test (there are: work, n)"),
        (
            'size="n", limits=[{"python.scaling": "<= 1.2"}]',
            'size="N"',
            "test_grows[counted-100]: size='N' is not a parameter of the test (there are: work, n)",
        ),
        ('size="n", ', "", 'a limit on python.scaling needs the parameter that is the size: size="n"'),
        ('size="n"', 'size="work"', "the size work must be a number above 0, not <function counted"),
        ('size="n"', "size=3", "size must be a string, not 3"),
    ],
)
def test_invalid_size_is_refused(growing: Project, before: str, after: str, words: str) -> None:
    growing.replace("test_it.py", before, after)
    session = growing.pytest()
    assert session.exit_code == 4
    assert words in session.stderr


@pytest.mark.slow
@pytest.mark.parametrize("limits", [["--opprof-limits=python.scaling=<= 1.2"], []])
def test_suite_size_is_for_the_tests_that_have_the_parameter(growing: Project, limits: list[str]) -> None:
    growing.replace("test_it.py", 'size="n", limits=[{"python.scaling": "<= 1.2"}]', "")
    growing.write(
        "test_other.py",
        """\
        import pytest

        @pytest.mark.profile(limits=[{"ranges.count": 0}])
        def test_plain():
            pass

        @pytest.mark.profile(limits=[{"ranges.count": 0}])
        @pytest.mark.parametrize("n", ["a word"])
        def test_words(n):
            pass
        """,
    )
    session = growing.pytest('--opprof-profile=size="n"', *limits)
    assert set(session.failures) == ({"test_grows[searched-400]"} if limits else set())
    assert session.exit_code == bool(limits)
    assert session.outcomes["test_plain"] == session.outcomes["test_words[a word]"] == "passed"


def test_a_last_size_that_skips_itself_is_noted(growing: Project) -> None:
    growing.replace("test_it.py", "    work(n)", "    work(n) if n < 400 else pytest.skip('slow')")
    session = growing.pytest("-k", "counted", env={"COLUMNS": "300"})
    assert session.exit_code == 0
    assert "test_grows[counted-400]: its growth was not judged: the test was skipped" in session.stdout
