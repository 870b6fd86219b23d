"""Ask git about commits; without git or a repository, nothing fails."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

# Taken here, because git is also asked while a measured test may have replaced it.
from subprocess import PIPE, CompletedProcess, Popen, TimeoutExpired

from pytest_opprof.results.run import Commit

_TIMEOUT_S = 30
# How far back stored runs are searched; git lists as many in a tenth of a second.
_MOST_ANCESTORS = 20_000
_QUIET = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
# Git sets these for a hook's children. They override the repository of the folder that git runs in.
_OF_ONE_REPOSITORY = frozenset(
    {
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_NAMESPACE"),
        *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
    }
)


def without_git() -> dict[str, str]:
    """This process's variables, without those that tie git to one repository or work tree."""
    return {name: value for name, value in os.environ.items() if name not in _OF_ONE_REPOSITORY}


def run_git(
    folder: Path,
    *arguments: str,
    given: bytes = b"",
    variables: Mapping[str, str] | None = None,
    timeout_s: int | None = _TIMEOUT_S,
) -> CompletedProcess[bytes]:
    """Run git in a folder, without questions to the user, in English; `variables` are added to ours.

    It is killed after so many seconds, None for never, and raises `TimeoutExpired`; or `OSError` if there is
    no git, or no folder.
    """
    environment = {**without_git(), **(variables or {}), **_QUIET}
    # People who sign commits often set this, and git then prints a line about the signature first.
    command = ["git", "-c", "log.showSignature=false", *arguments]
    with Popen(command, cwd=folder, env=environment, stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
        try:
            told, complaint = process.communicate(given, timeout=timeout_s)
        except BaseException:
            process.kill()
            raise
    return CompletedProcess(command, process.returncode, told, complaint)


class Git:
    """The repository that a folder is in; `problem` says why git does not answer, if it does not."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.problem = ""
        if self._ask("rev-parse", "--git-dir") is None and not self.problem:
            self.problem = "git does not answer"

    def head(self) -> Commit | None:
        """The commit that is checked out; None outside a repository and before its first commit."""
        commit = None if self.problem else self.commit_of("HEAD")
        if commit is None:
            return None
        # Untracked files do not count: most work trees have caches and outputs.
        status = self._ask("status", "--porcelain", "--untracked-files=no")
        branch = self._ask("symbolic-ref", "--quiet", "--short", "HEAD")
        # If git does not know, it is not clean: a changed tree is never stored as its commit.
        return Commit(id=commit, dirty=status is None or bool(status), branch=branch or None)

    def commit_of(self, ref: str) -> str | None:
        """The commit that a branch, tag or revision names, here or at origin."""
        if self.problem or not ref or ref.startswith("-"):
            return None
        options = ("--verify", "--quiet", "--end-of-options")
        told = (self._ask("rev-parse", *options, f"{name}^{{commit}}") for name in (ref, f"origin/{ref}"))
        return next(filter(None, told), None)

    def merge_base(self, one: str, *others: str) -> str | None:
        """The best common ancestor of a commit and any of others; None without one in the local history."""
        return self._ask("merge-base", one, *others) or None

    def branch_point(self, commit: str, ref: str) -> str | None:
        """The merge base of a commit and what a branch, tag or revision names; None without either.

        A branch may be behind here, or ahead, of the same branch at origin: the nearer merge base is taken.
        """
        both = self._ask("show-ref", "--verify", "--hash", f"refs/heads/{ref}", f"refs/remotes/origin/{ref}")
        tips = (both or self.commit_of(ref) or "").split()
        return self.merge_base(commit, *tips) if tips else None

    def ancestors(self, commit: str) -> list[str]:
        """A commit and its ancestors, nearest first."""
        listed = self._ask("rev-list", f"--max-count={_MOST_ANCESTORS}", commit)
        return listed.split() if listed else []

    def committed(self, commit: str) -> datetime | None:
        """When a commit was made; None if it is not here."""
        told = self._ask("show", "--no-patch", "--format=%ct", "--end-of-options", commit)
        try:
            return datetime.fromtimestamp(int(told), tz=UTC) if told else None
        except (ValueError, OverflowError, OSError):
            return None  # an impossible year, or not a commit

    def has_commit(self, commit: str) -> bool:
        """Whether the repository has a commit."""
        return self._ask("cat-file", "-e", f"{commit}^{{commit}}") is not None

    @property
    def prefix(self) -> str:
        """The folder as seen from the repository's top, ``packages/a``; empty at the top, and outside."""
        return (self._ask("rev-parse", "--show-prefix") or "").rstrip("/")

    @property
    def remote(self) -> str:
        """The remote to fetch from: origin, or the only one; empty without one."""
        remotes = (self._ask("remote") or "").split()
        return "origin" if "origin" in remotes else remotes[0] if remotes else ""

    @property
    def place(self) -> str:
        """Identifies the repository, ``github.com/owner/name``; empty outside.

        It is the fetch address, without scheme, user or password, or else the repository's folder, so that
        clones and work trees have the same.
        """
        address = self._ask("remote", "get-url", self.remote) if self.remote else ""
        if not address:
            folder = self._ask("rev-parse", "--git-common-dir")
            address = "" if folder is None else str((self._folder / folder).resolve())
        host = re.sub(r"^([a-z0-9+]+://)?([^@/]*@)?", "", address)
        return re.sub(r"/?(\.git)?/*$", "", re.sub(r"^([^/:]+):", r"\1/", host))

    @property
    def is_shallow(self) -> bool:
        """Whether history is cut off, as in most CI checkouts."""
        return self._ask("rev-parse", "--is-shallow-repository") == "true"

    def _ask(self, *arguments: str) -> str | None:
        """Git's output; None if it fails, which often is an answer."""
        try:
            done = run_git(self._folder, *arguments)
        except FileNotFoundError:
            self.problem = (
                "git is not installed" if self._folder.is_dir() else f"{self._folder} is not a folder"
            )
        except (OSError, TimeoutExpired) as error:
            self.problem = f"git does not answer ({type(error).__name__})"
        else:
            if done.returncode == 0:
                return done.stdout.decode("utf-8", "replace").strip()
            told = done.stderr.decode("utf-8", "replace")
            if done.returncode < 0:
                self.problem = f"git does not answer (ended by signal {-done.returncode})"
            elif "not a git repository" in told:
                self.problem = "this is not a git repository"
            elif "dubious ownership" in told:
                self.problem = "the repository belongs to another user (git config safe.directory)"
        return None


class CommitsAtHand:
    """Which commits a folder's repository knows; `problem` says why others may exist."""

    def __init__(self, folder: Path) -> None:
        self.git = git = Git(folder)
        self.problem = git.problem
        if not git.problem and git.is_shallow:
            fetch = f"git fetch --unshallow {git.remote}".rstrip()
            self.problem = f"this clone is shallow ({fetch} brings the history)"

    def lacks(self, commit: str) -> bool:
        """Whether a commit no longer exists; not while git does not answer."""
        # Git is asked first, because its problem shows only then.
        return not self.problem and not self.git.has_commit(commit) and not self.git.problem
