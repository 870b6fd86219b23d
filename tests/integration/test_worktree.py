"""A commit's files in a separate folder, with real git."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from e2e.project import Project, environment

from pytest_opprof.errors import ExperimentError
from pytest_opprof.experiment.worktree import checked_out, top_folder

HOLDER = """\
import sys
from pathlib import Path
from pytest_opprof.experiment.worktree import checked_out
with checked_out(Path(sys.argv[1]), sys.argv[2]) as worktree:
    print(worktree.folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A repository with a file of two versions."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    for name, value in environment().items():
        if name.startswith("GIT_"):
            monkeypatch.setenv(name, value)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setenv("TMPDIR", str(temporary))
    (tmp_path / "project").mkdir()
    project = Project(tmp_path / "project")
    project.git("init", "-q")
    project.write("file.py", "old\n")
    project.commit()
    project.write("file.py", "new\n")
    project.commit()
    return project


def known(project: Project) -> list[str]:
    """Git's work trees besides the project's own."""
    listed = project.git("worktree", "list", "--porcelain").splitlines()
    return [line for line in listed if line.startswith("worktree ")][1:]


def left(tmp_path: Path) -> list[Path]:
    """Entries of the temporary folder."""
    return list((tmp_path / "temporary").iterdir())


def test_worktree_holds_the_commits_files_and_is_removed(project: Project, tmp_path: Path) -> None:
    with checked_out(project.folder, project.git("rev-parse", "HEAD~1")) as worktree:
        assert (worktree.folder / "file.py").read_text() == "old\n"
        assert worktree.folder.name == "project"
        assert top_folder(worktree.folder) == worktree.folder
        # changed and new files do not keep it
        (worktree.folder / "file.py").write_text("changed")
        (worktree.folder / "more").mkdir()
        (worktree.folder / "more" / "made.txt").write_text("made")
    assert (known(project), left(tmp_path)) == ([], [])
    assert (project.folder / "file.py").read_text() == "new\n"
    assert project.git("status", "--porcelain") == ""


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_worktree_is_removed_after_an_error(
    project: Project, tmp_path: Path, error: type[BaseException]
) -> None:
    with pytest.raises(error), checked_out(project.folder, "HEAD"):
        raise error
    assert (known(project), left(tmp_path)) == ([], [])


def test_missing_commit_leaves_nothing_behind(project: Project, tmp_path: Path) -> None:
    with (
        pytest.raises(ExperimentError, match=r"git worktree failed in .*: fatal: "),
        checked_out(project.folder, "f" * 40),
    ):
        pass
    assert (known(project), left(tmp_path)) == ([], [])


def test_outside_a_repository_git_says_so(tmp_path: Path) -> None:
    with (
        pytest.raises(ExperimentError, match=r"git rev-parse failed in .*not a git repository"),
        checked_out(tmp_path, "HEAD"),
    ):
        pass


def test_hooks_and_git_variables_are_ignored(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hook = project.folder / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "no-index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    with checked_out(project.folder, "HEAD~1") as worktree:
        assert (worktree.folder / "file.py").read_text() == "old\n"


def test_submodules_are_named(project: Project) -> None:
    project.git("update-index", "--add", "--cacheinfo", f"160000,{'a' * 40},vendored/part")
    project.git("commit", "-q", "-m", "A submodule")
    with checked_out(project.folder, "HEAD") as worktree:
        assert worktree.submodules == ("vendored/part",)


def test_only_dead_processes_worktrees_are_removed(project: Project, tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(project.folder), project.git("rev-parse", "HEAD~1")]
    holders = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    folders = []
    for holder in holders:
        assert holder.stdout is not None
        folders.append(Path(holder.stdout.readline().strip()))
    holders[0].send_signal(signal.SIGKILL)
    holders[0].communicate()
    assert folders[0].exists(), "nobody was left to remove it"
    with checked_out(project.folder, "HEAD"):
        assert [folder.exists() for folder in folders] == [False, True]
        assert len(known(project)) == 2
    holders[1].communicate("")
    assert holders[1].returncode == 0
    assert (known(project), left(tmp_path)) == ([], [])


def test_a_work_tree_whose_folder_is_elsewhere_stays_known(project: Project, tmp_path: Path) -> None:
    """As on another host, or in a container, that shares the repository and has its own temporary folder."""
    with checked_out(project.folder, "HEAD") as worktree:
        elsewhere = tmp_path / "elsewhere"
        worktree.folder.parent.rename(elsewhere)
        with checked_out(project.folder, "HEAD"):
            assert len(known(project)) == 2
        elsewhere.rename(worktree.folder.parent)
        assert top_folder(worktree.folder) == worktree.folder
    assert (known(project), left(tmp_path)) == ([], [])
