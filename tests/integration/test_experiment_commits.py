"""The commits of an A/B, and whose test files its sides have, with real git and files."""

from pathlib import Path

import pytest
from e2e.project import Project, environment

from pytest_opprof.errors import UsageError
from pytest_opprof.experiment.commits import base_of, head_of
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
    copy_tests(["a/b/test_it.py"], source=source, to=to)
    found = {path.relative_to(to).as_posix(): path.read_text() for path in to.rglob("*.py")}
    assert found == {
        "a/conftest.py": "source",
        "a/b/test_it.py": "source",
        "a/test_other.py": "to",
        "code.py": "to",
    }
