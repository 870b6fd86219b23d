"""The commits of an experiment: the merge base, and the work tree's current content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pytest_opprof.baselines.git import Git
from pytest_opprof.errors import UsageError
from pytest_opprof.experiment.worktree import git, top_folder
from pytest_opprof.results.run import Commit


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The work tree's current content.

    Attributes:
        digest: Of the uncommitted changes; "" if there are none.
    """

    commit: Commit
    digest: str = ""

    @property
    def key(self) -> str:
        """Equal exactly if the commit and the uncommitted changes are."""
        return f"{self.commit.id}+{self.digest}" if self.digest else self.commit.id


def head_of(folder: Path) -> Head:
    """What a work tree holds: its commit, changed files, and new Python files.

    Raises:
        UsageError: It is in no repository, or in one without a commit.
        ExperimentError: Git fails.
    """
    repository = Git(folder)
    commit = repository.head()
    if commit is None:
        why = repository.problem or "the repository has no commit yet"
        raise UsageError(f"there is nothing to compare with: {why} ({folder})")
    top = top_folder(folder)
    changes = git(top, "diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv")
    new = sorted(git(top, "ls-files", "--others", "--exclude-standard", "-z", "--", "*.py").split("\0"))
    if not changes and not any(new):
        return Head(commit=commit)
    digest = hashlib.sha256(changes.encode("utf-8", "surrogateescape"))
    for name in filter(None, new):
        digest.update(name.encode("utf-8", "surrogateescape") + b"\0")
        path = top / name
        digest.update(path.read_bytes() if path.is_file() else b"")
    return Head(commit=Commit(id=commit.id, dirty=True, branch=commit.branch), digest=digest.hexdigest()[:16])


def base_of(text: str, head: Head, *, folder: Path) -> str:
    """The commit that the head's work began from: the merge base of HEAD and the revision ``text``.

    Raises:
        UsageError: There is no such revision or no merge base.
    """
    repository = Git(folder)
    tip = repository.commit_of(text)
    if tip is None:
        raise UsageError(f"git knows no branch, tag or commit {text!r}, here or at origin. Name another BASE")
    found = repository.merge_base(head.commit.id, tip)
    if found is None:
        more = "git fetch --unshallow" if repository.is_shallow else "name another BASE"
        raise UsageError(f"HEAD and {text} have no common commit in the local history: {more}")
    return found
