"""Which commits an experiment is about: where the work began, and what is in the work tree now."""

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
    """The work tree as it is.

    Attributes:
        digest: Of the changes that are not committed; "" where there are none.
    """

    commit: Commit
    digest: str = ""

    @property
    def key(self) -> str:
        """Equal exactly where the files are."""
        return f"{self.commit.id}+{self.digest}" if self.digest else self.commit.id


def head_of(folder: Path) -> Head:
    """What a work tree holds: its commit, changed files, and new Python files.

    Raises:
        UsageError: It is in no repository, or before the first commit.
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
    """The commit that the head's work began from: the merge-base of HEAD and what the user named.

    Raises:
        UsageError: Git knows nothing such, or no commit that both have.
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
