"""Which stored runs are those of a commit and its ancestors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from pytest_opprof.baselines.git import Git
from pytest_opprof.baselines.keys import REVIEWED
from pytest_opprof.baselines.store import Entry

SHORT = 7  # digits of a commit in messages


def newest_first(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The runs by time; one with uncommitted changes comes after the clean runs of its commit and family."""
    entries = tuple(entries)
    clean: dict[tuple[str | None, str], datetime] = {}
    for entry in entries:
        if not entry.is_dirty:
            of = entry.commit, entry.family
            clean[of] = min(entry.created, clean.get(of, entry.created))

    def order(entry: Entry) -> tuple[datetime, bool, str]:
        limit = clean.get((entry.commit, entry.family), entry.created) if entry.is_dirty else entry.created
        return min(entry.created, limit), not entry.is_dirty, entry.key

    return tuple(sorted(entries, key=order, reverse=True))


def nearest_first(entries: Iterable[Entry], commits: Iterable[str]) -> Iterator[tuple[Entry, int]]:
    """The runs of these commits in order, each with the number of commits before its own."""
    of_commit: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.commit is not None:
            of_commit.setdefault(entry.commit, []).append(entry)
    for passed, commit in enumerate(commits):
        for entry in of_commit.get(commit, ()):
            yield entry, passed


def why_no_ancestor(entry: Entry, of_what: str) -> str:
    """Why a run is not known to be an ancestor's."""
    if entry.key == REVIEWED:
        return "it was copied from a counts: store and has no commit"
    which = f"the commit {entry.commit[:SHORT]}" if entry.commit else "the time"
    return f"{which} it was stored under is not an ancestor of {of_what}"


def cut_off_history(git: Git) -> str:
    """A sentence on missing history, with the command that fetches it."""
    if not git.is_shallow:
        return ""
    remote = git.remote
    fetch = f"git fetch --unshallow {remote}".rstrip()
    return f" as far as this shallow clone shows ({fetch} brings the history; in CI: fetch-depth: 0)"
