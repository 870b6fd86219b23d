"""An A/B with nothing to compare, or with invalid arguments."""

from pathlib import Path

import pytest
from e2e.ab.experiments import TESTS, ab, experiments, nothing_left
from e2e.project import Project


@pytest.mark.slow
def test_uncollectable_base_shows_its_last_lines(project: Project) -> None:
    project.write("tests/test_it.py", "import nowhere_to_be_found")
    project.commit()
    project.write("tests/test_it.py", TESTS)
    told = ab(project, "HEAD")
    assert told.code == 9
    assert told.stderr.startswith("opprof: pytest cannot collect the tests in ")
    assert "No module named 'nowhere_to_be_found'" in told.stderr
    assert nothing_left(project)


@pytest.mark.slow
def test_base_whose_tests_cannot_run_is_reported(project: Project) -> None:
    project.replace("tests/test_it.py", "import work", "import work, added")
    project.write("added.py", "")
    project.git("add", "added.py")
    told = ab(project, "HEAD")
    assert told.code == 9
    assert told.stderr.startswith("opprof: the tests cannot be run on the base: exit code 2:")
    assert "No module named 'added'" in told.stderr


@pytest.mark.slow
def test_without_a_common_test_there_is_nothing_to_compare(project: Project) -> None:
    project.replace("tests/test_it.py", "def test_pipeline", "def test_renamed")
    told = ab(project, "HEAD", "-k", "renamed")
    assert told.code == 9
    sentence = (
        "opprof: there is nothing to compare: the test tests/test_it.py::test_renamed is not in the base"
    )
    assert told.stderr == sentence + "\n"
    project.write("tests/test_more.py", TESTS)
    told = ab(project, "HEAD", "tests/test_more.py")
    assert "there is nothing to compare: none of 2 tests is in the base" in told.stderr


@pytest.mark.slow
def test_tests_that_the_head_no_longer_has_are_named(project: Project) -> None:
    marked = TESTS.replace("def test_unmarked", "@pytest.mark.profile\n    def test_unmarked")
    project.write("tests/test_it.py", marked.replace("work.other()", "pytest.skip()"))
    project.commit()
    project.write("tests/test_it.py", TESTS.replace("work.other()", "pytest.skip()"))
    project.replace("tests/test_it.py", "def test_pipeline", "def test_renamed")
    gone = "not measured, because only the base has them: tests/test_it.py::"
    told = ab(project, "HEAD", "tests", "-k", "test_it")
    assert f"{gone}test_pipeline, tests/test_it.py::test_unmarked\n" in told.stdout
    told = ab(project, "HEAD", "tests/test_it.py::test_other")
    assert (told.code, gone in told.stdout) == (0, False)


@pytest.mark.slow
def test_nothing_passes_if_all_base_tests_fail(project: Project) -> None:
    project.write(
        "tests/test_it.py", TESTS.replace("work.other()", "work.gone()").replace("work.p", "work.q")
    )
    project.commit()
    done = ab(project, "HEAD", "tests")
    assert done.code == 9
    both = "tests/test_it.py::test_pipeline and 1 more failed in the base"
    assert f"opprof: there is nothing to compare: {both}" in done.stderr


def test_without_a_marked_test_there_is_nothing_to_measure(project: Project) -> None:
    told = ab(project, "HEAD", "tests/test_it.py::test_unmarked")
    assert told.code == 9
    assert "none of the selected tests has @pytest.mark.profile" in told.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nothing-such",), "git knows no branch, tag or commit 'nothing-such'"),
        (("HEAD", "--processes=7"), "--processes=7: it must be a number from 8 to 1000"),
        (("HEAD", "--steps=0"), "--steps=0: it must be a number from 1 to 1000"),
        (("HEAD", "--max-time=-1"), "--max-time=-1.0: it must be a number from 0 to 3600"),
        (("HEAD", "--timeout=0"), "--timeout=0: it must be a number of seconds above 0"),
        (("HEAD", "--min-effect=some"), "--min-effect"),
        (("HEAD", "--max-noise=some"), "--max-noise"),
        (("HEAD", "--fail-on=slower"), "--fail-on: unknown verdict 'slower'"),
        (
            ("HEAD", "--resume"),
            "--resume: no unfinished experiment has these options; leave out --resume to start one. Unfinished: none",
        ),
        (("HEAD", "--resume=one"), "--resume=one: no such experiment in .opprof/ab; unfinished: none"),
    ],
)
def test_invalid_arguments_are_refused(project: Project, arguments: tuple[str, ...], sentence: str) -> None:
    told = ab(project, *arguments)
    assert told.code == 2
    assert told.stderr.startswith(f"opprof: {sentence}")
    assert experiments(project) == []


def test_missing_repository_is_reported(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    told = ab(Project(tmp_path / "bare"), "main", env={"GIT_CEILING_DIRECTORIES": str(tmp_path)})
    assert told.code == 9
    assert "not a git repository" in told.stderr
