"""The commits of an experiment: the merge base, and the work tree's current content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from pytest_opprof.baselines.git import Git
from pytest_opprof.errors import UsageError
from pytest_opprof.experiment.worktree import git, top_folder
from pytest_opprof.results.run import Commit
from pytest_opprof.wording import listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The work tree's current content."""

    commit: Commit
    digest: str = ""  # of the uncommitted changes; "" if there are none
    # The changed and new files, each with a digest of its content.
    files: frozenset[tuple[str, str]] = frozenset()

    @property
    def key(self) -> str:
        """Equal exactly if the commit and the uncommitted changes are."""
        return f"{self.commit.id}+{self.digest}" if self.digest else self.commit.id


def head_of(folder: Path) -> Head:
    """What a work tree holds: its commit, changed files, and new Python files; raises `OpprofError`."""
    repository = Git(folder)
    commit = repository.head()
    if commit is None:
        why = repository.problem or "the repository has no commit yet"
        raise UsageError(f"there is nothing to compare with: {why} ({folder})")
    top = top_folder(folder)
    changes = git(top, "diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv")
    changed = git(top, "diff", "HEAD", "--name-only", "--no-renames", "-z").split("\0")
    new = git(top, "ls-files", "--others", "--exclude-standard", "-z", "--", "*.py").split("\0")
    files = {name: _digest(top / name) for name in sorted({*changed, *new}) if name}
    if not files:
        return Head(commit=commit)
    digest = hashlib.sha256("\0".join([changes, *chain(*files.items())]).encode("utf-8", "surrogateescape"))
    return Head(
        commit=Commit(id=commit.id, dirty=True, branch=commit.branch),
        digest=digest.hexdigest()[:16],
        files=frozenset(files.items()),
    )


def changed_since(before: Head, folder: Path) -> str:
    """Name the files that changed since then; empty if none did."""
    now = head_of(folder)
    names = sorted({name for name, _ in before.files ^ now.files})
    return (listed(names, most=3) or "HEAD") if now.key != before.key else ""


def base_of(text: str, head: Head, *, folder: Path) -> str:
    """The merge base of HEAD and the revision ``text``: where the head's work began; raises `UsageError`."""
    repository = Git(folder)
    if repository.commit_of(text) is None:
        raise UsageError(f"git knows no branch, tag or commit {text!r}, here or at origin. Name another BASE")
    found = repository.branch_point(head.commit.id, text)
    if found is None:
        more = "git fetch --unshallow" if repository.is_shallow else "name another BASE"
        raise UsageError(f"HEAD and {text} have no common commit in the local history: {more}")
    return found


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
