"""The commits of an A/B, and whose test files its sides have, with real git and files."""

from pathlib import Path, PurePosixPath

import pytest
from e2e.project import Project, environment

from pytest_opprof.baselines.archive import open_store
from pytest_opprof.errors import ExperimentError, UsageError
from pytest_opprof.experiment.bisect import question_of
from pytest_opprof.experiment.commits import base_of, head_of
from pytest_opprof.experiment.one_commit import test_files as files_at
from pytest_opprof.experiment.sides import copy_tests


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A repository with a commit on main, and one on a checked-out topic branch."""
    for name, value in environment().items():
        if name.startswith("GIT_"):
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / "project").mkdir()
    project = Project(tmp_path / "project")
    project.git("init", "-q", "-b", "main")
    project.write("code.py", "old\n")
    project.commit()
    project.git("checkout", "-q", "-b", "topic")
    project.write("code.py", "new\n")
    project.commit()
    return project


def test_base_is_the_merge_base(project: Project) -> None:
    began = project.git("rev-parse", "main")
    project.git("checkout", "-q", "main")
    project.write("other.py", "later\n")
    project.commit()
    project.git("checkout", "-q", "topic")
    head = head_of(project.folder)
    assert (head.commit.id, head.digest) == (project.git("rev-parse", "topic"), "")
    assert base_of("main", head, folder=project.folder) == began
    assert base_of("HEAD~1", head, folder=project.folder) == began
    assert base_of("HEAD", head, folder=project.folder) == head.commit.id


def test_commits_without_a_common_one_are_refused(project: Project) -> None:
    project.git("checkout", "-q", "--orphan", "alone")
    project.git("commit", "-q", "-m", "Another beginning")
    project.git("checkout", "-q", "topic")
    with pytest.raises(UsageError, match=r"HEAD and alone have no common commit .*name another BASE"):
        base_of("alone", head_of(project.folder), folder=project.folder)


def test_digest_distinguishes_file_states(project: Project) -> None:
    seen = {head_of(project.folder).key}
    project.write("code.py", "newer\n")
    seen.add(head_of(project.folder).key)
    project.write("code.py", "newest\n")
    seen.add(head_of(project.folder).key)
    project.write("added.py", "more\n")
    seen.add(head_of(project.folder).key)
    project.write("added.py", "much more\n")
    dirty = head_of(project.folder)
    seen.add(dirty.key)
    assert len(seen) == 5
    assert dirty.commit.short.endswith("+dirty")
    # files that a test writes beside its code do not count
    project.write("results.txt", "42\n")
    assert head_of(project.folder) == dirty
    assert head_of(project.folder / ".git" / "..") == dirty


def test_before_the_first_commit_there_is_nothing_to_compare_with(tmp_path: Path, project: Project) -> None:
    with pytest.raises(UsageError, match="there is nothing to compare with: this is not a git repository"):
        head_of(tmp_path)
    (tmp_path / "new").mkdir()
    new = Project(tmp_path / "new")
    new.git("init", "-q")
    with pytest.raises(UsageError, match="the repository has no commit yet"):
        head_of(new.folder)


def test_an_absolute_test_is_searched_in_each_work_tree(tmp_path: Path, project: Project) -> None:
    (tmp_path / "link").symlink_to(project.folder)
    project.write("tests/test_it.py", "")
    for place in (project.folder, tmp_path / "link"):
        for test in ("tests/test_it.py::test_x[a::b]", f"{place}/tests/test_it.py::test_x[a::b]"):
            question = question_of(
                test,
                "work.count",
                good="main",
                bad="HEAD",
                setup="",
                python="",
                store=open_store("dir:.opprof", root=project.folder),
                repository=project.folder,
            )
            assert question.test == "tests/test_it.py::test_x[a::b]"


def test_test_files_and_the_conftests_above_them_become_the_sources(tmp_path: Path) -> None:
    source, to = tmp_path / "source", tmp_path / "to"
    files = {
        source: ("a/conftest.py", "a/b/test_it.py", "a/test_other.py", "code.py", "c/conftest.py"),
        to: ("conftest.py", "a/b/conftest.py", "a/b/test_it.py", "code.py", "a/test_other.py"),
    }
    for top, names in files.items():
        for name in names:
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_text(top.name)
    copy_tests(["a/b/test_it.py"], source=source, to=to, top=to)
    found = {path.relative_to(to).as_posix(): path.read_text() for path in to.rglob("*.py")}
    assert found == {
        "a/conftest.py": "source",
        "a/b/test_it.py": "source",
        "a/test_other.py": "to",
        "code.py": "to",
    }


@pytest.mark.parametrize("target", ["../source/test_it.py", "absent.py", "shared.py"])
def test_a_link_is_replaced_and_its_target_left(tmp_path: Path, target: str) -> None:
    source, to = tmp_path / "source", tmp_path / "to"
    for folder in (source, to):
        folder.mkdir()
    (source / "test_it.py").write_text("source")
    (to / "shared.py").write_text("shared")
    (to / "test_it.py").symlink_to(target)
    copy_tests(["test_it.py"], source=source, to=to, top=to)
    assert [(path.name, path.is_symlink(), path.read_text()) for path in sorted(to.iterdir())] == [
        ("shared.py", False, "shared"),
        ("test_it.py", False, "source"),
    ]
    assert (source / "test_it.py").read_text() == "source"


def test_no_file_outside_the_work_tree_is_written(tmp_path: Path) -> None:
    source, to = tmp_path / "source", tmp_path / "to"
    (source / "tests").mkdir(parents=True)
    (source / "tests" / "test_it.py").write_text("source")
    to.mkdir()
    (to / "tests").symlink_to(source / "tests")
    with pytest.raises(
        ExperimentError, match=r"/tests/conftest\.py cannot be replaced: its folder is outside"
    ):
        copy_tests(["tests/test_it.py"], source=source, to=to, top=to)
    assert (source / "tests" / "test_it.py").read_text() == "source"


def test_a_bisected_test_that_is_a_link_has_its_targets_content(project: Project) -> None:
    project.write("shared/test_it.py", "the test\n")
    project.write("shared/other.py", "all\n")
    (project.folder / "test_it.py").symlink_to("shared/link.py")
    (project.folder / "shared" / "link.py").symlink_to("test_it.py")
    (project.folder / "conftest.py").symlink_to("conftest.py")
    project.commit()
    with pytest.raises(ExperimentError, match=r"conftest\.py is a symbolic link to itself"):
        files_at(project.folder, "test_it.py", commit="HEAD")
    (project.folder / "conftest.py").unlink()
    (project.folder / "conftest.py").symlink_to("shared/other.py")
    project.commit()
    found = files_at(project.folder, "test_it.py", commit="HEAD")
    assert found == {PurePosixPath("test_it.py"): b"the test\n", PurePosixPath("conftest.py"): b"all\n"}
