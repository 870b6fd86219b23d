"""Properties of a repository, asked of real git."""

from pathlib import Path

import pytest
from support.documents.stores import NOBODY, git, run_of

from pytest_opprof.baselines.archive import open_store
from pytest_opprof.baselines.git import Git
from pytest_opprof.results.run import Commit


@pytest.mark.parametrize(
    ("remotes", "taken"),
    [((), ""), (("upstream",), "upstream"), (("fork", "origin"), "origin"), (("a", "b"), "a")],
    ids=["none", "the only one", "origin", "the first"],
)
def test_fetch_remote_is_chosen(tmp_path: Path, remotes: tuple[str, ...], taken: str) -> None:
    git(tmp_path, "init", "--quiet")
    for remote in remotes:
        git(tmp_path, "remote", "add", remote, f"https://example.org/{remote}.git")
    assert Git(tmp_path).remote == taken


def test_head_describes_the_checkout(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    assert Git(tmp_path).head() is None
    (tmp_path / "file.txt").write_text("one")
    git(tmp_path, "add", "file.txt")
    git(tmp_path, "commit", "-q", "-m", "one")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert Git(tmp_path).head() == Commit(id=commit, dirty=False, branch="main")
    (tmp_path / "untracked").write_text("")
    (tmp_path / "file.txt").write_text("changed")
    git(tmp_path, "switch", "-q", "--detach")
    assert Git(tmp_path).head() == Commit(id=commit, dirty=True, branch=None)


def test_unknown_state_counts_as_dirty(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
    (tmp_path / ".git" / "index").write_bytes(b"damaged")
    head = Git(tmp_path).head()
    assert head == Commit(id=git(tmp_path, "rev-parse", "HEAD"), dirty=True, branch="main")


def test_missing_folder_is_a_problem_not_a_crash(tmp_path: Path) -> None:
    git = Git(tmp_path / "none")
    assert "is not a folder" in git.problem
    assert git.head() is None


def test_a_git_hook_of_a_linked_work_tree_uses_the_folders_own_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ours", "other"):
        (tmp_path / name / "packages" / "a").mkdir(parents=True)
        (tmp_path / name / "packages" / "a" / "file.txt").write_text(name)
        git(tmp_path / name, "init", "-q", "-b", "main")
        git(tmp_path / name, "add", ".")
        git(tmp_path / name, "commit", "-q", "-m", "one")
    git(tmp_path / "ours", "worktree", "add", "-q", "--detach", "../linked")
    place = git(tmp_path / "linked", "rev-parse", "--absolute-git-dir")
    monkeypatch.setenv("GIT_DIR", place)
    monkeypatch.setenv("GIT_INDEX_FILE", f"{place}/index")
    project = Git(tmp_path / "linked" / "packages" / "a")
    head = project.head()
    assert head is not None
    assert (project.prefix, head.dirty) == ("packages/a", False)
    ours, other = (open_store("git:", root=tmp_path / name) for name in ("ours", "other"))
    other.save("main", run_of(1), collected=NOBODY)
    assert (ours.names(), other.names()) == ((), ("main",))


def test_shown_signatures_hide_no_commit_time(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "config", "log.showSignature", "true")
    git(tmp_path, "config", "gpg.program", "true")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
    # As a signed commit, with a signature that nobody can check.
    plain = git(tmp_path, "cat-file", "commit", "HEAD").replace("\n\n", "\ngpgsig signed\n\n", 1)
    (tmp_path / "signed").write_text(f"{plain}\n")
    signed = git(tmp_path, "hash-object", "-t", "commit", "-w", "signed")
    assert Git(tmp_path).committed(signed) is not None
