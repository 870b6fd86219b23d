"""Which stored run a session is compared with: the one that the work began from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_opprof.baselines.git import Git
from pytest_opprof.errors import MissingBaselineError
from pytest_opprof.results.files import read_run

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta

    from pytest_opprof.baselines.store import BaselineStore, Entry
    from pytest_opprof.results.run import Run

_SHORT = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The baseline of a session.

    Attributes:
        run: the stored run.
        path: its file, for other processes of the session.
        label: what a header says of it: ``main@1a2b3c4 (merge-base, 2 days old)``.
        notes: sentences on what is not as one would expect.
    """

    run: Run
    path: Path
    label: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    entry: Entry
    relation: str
    note: str = ""


def resolve_baseline(store: BaselineStore, wanted: str, *, repository: Path, now: datetime) -> Resolved:
    """The run stored for the merge-base of HEAD and a branch, else for its nearest ancestor, else the latest.

    Args:
        store: where baselines are kept.
        wanted: a baseline's name, which is usually a branch's, or any revision that git knows.
        repository: a folder in the repository; it need not be one.
        now: for the baseline's age.

    Raises:
        MissingBaselineError: there is none.
        DocumentError: the file holds no run that this release can use.
        StoreError: the store or the file cannot be read.
    """
    git = Git(repository)
    names = store.names()
    if wanted in names:
        choice = _of_name(store.entries(wanted), wanted, git=git)
    else:
        choice = _of_revision(store, wanted, names, git=git)
    run = store.load(choice.entry)
    notes = [choice.note] if choice.note else []
    if choice.entry.is_dirty:
        notes.append(f"{run.title} was measured with uncommitted changes")
    label = f"{run.title} ({choice.relation}, {_age(now - run.created)} old)"
    return Resolved(run=run, path=choice.entry.path, label=label, notes=tuple(notes))


def find_run(text: str, *, store: BaselineStore) -> Run:
    """The run that a command's argument means: a file, a baseline's name, or ``name@commit``.

    Raises:
        MissingBaselineError: it is none of them.
        DocumentError: the file holds no run that this release can use.
        StoreError: the file cannot be read.
    """
    path = Path(text)
    name, _, commit = text.rpartition("@")
    names = store.names()
    if not path.exists():
        if text in names:
            return store.load(store.entries(text)[0])
        matching = [
            e for e in (store.entries(name) if name in names else ()) if commit and e.key.startswith(commit)
        ]
        if matching:
            return store.load(matching[0])
        raise MissingBaselineError(f"{text}: there is no such file, and {_no_baseline(text, store, names)}")
    return read_run(path)


def _of_name(entries: tuple[Entry, ...], wanted: str, *, git: Git) -> _Choice:
    latest = entries[0]
    head = git.head()
    if head is None:
        why = git.problem or "the repository has no commit yet"
        return _Choice(entry=latest, relation="latest", note=f"took the latest run named {wanted!r}: {why}")
    tip = git.commit_of(wanted)
    start = git.merge_base(head.id, tip) if tip else head.id
    found = _nearest(entries, git.ancestors(start or head.id))
    if found is not None:
        entry, steps = found
        at_start = "merge-base" if tip else "this commit"
        return _Choice(entry=entry, relation="nearest ancestor" if steps else at_start)
    which = f"the commit {latest.commit[:_SHORT]}" if latest.commit else "the time"
    note = f"took the latest run named {wanted!r}: {which} it was stored under is no ancestor of HEAD"
    if git.is_shallow:
        note += " as far as this shallow clone shows (fetch-depth: 0 brings the history)"
    return _Choice(entry=latest, relation="latest", note=note)


def _of_revision(store: BaselineStore, wanted: str, names: tuple[str, ...], *, git: Git) -> _Choice:
    head, tip = git.head(), git.commit_of(wanted)
    if head is None or tip is None:
        msg = (
            f"{_no_baseline(wanted, store, names)}. Record one on that branch: pytest --opprof-save={wanted}"
        )
        raise MissingBaselineError(msg)
    entries = [entry for name in names for entry in store.entries(name)]
    start = git.merge_base(head.id, tip) or tip
    found = _nearest(entries, git.ancestors(start))
    if found is None:
        raise MissingBaselineError(
            f"{_no_baseline(wanted, store, names)}, and no run of commit {start[:_SHORT]} or one before it. "
            f"Record one on that branch: pytest --opprof-save={wanted}"
        )
    entry, steps = found
    return _Choice(entry=entry, relation="nearest ancestor" if steps else "merge-base")


def _nearest(entries: Iterable[Entry], commits: Iterable[str]) -> tuple[Entry, int] | None:
    """The newest run of the first commit that has one, and how many commits were passed over."""
    newest: dict[str, Entry] = {}
    for entry in entries:
        if entry.commit is not None:
            known = newest.get(entry.commit)
            newest[entry.commit] = entry if known is None or entry.created > known.created else known
    for passed, commit in enumerate(commits):
        if commit in newest:
            return newest[commit], passed
    return None


def _no_baseline(wanted: str, store: BaselineStore, names: tuple[str, ...]) -> str:
    has = f"it has: {', '.join(names)}" if names else "it is empty"
    return f"no baseline {wanted!r} in {store.uri} ({has})"


def _age(age: timedelta) -> str:
    """``5 minutes``, ``2 days``; a clock that runs behind makes nothing older than now."""
    seconds = max(age.total_seconds(), 0)
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        count = int(seconds // length)
        if count:
            return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
    return "less than a minute"
