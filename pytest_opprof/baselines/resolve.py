"""Find the stored run to compare a session with: the one its work began from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from pytest_opprof.baselines.ancestry import (
    SHORT,
    cut_off_history,
    nearest_first,
    newest_first,
    why_no_ancestor,
)
from pytest_opprof.baselines.archive import Archive
from pytest_opprof.baselines.counts import CountsStore
from pytest_opprof.baselines.environment_match import differences_of_counts, nearest_like
from pytest_opprof.baselines.git import Git
from pytest_opprof.baselines.keys import FAMILY, IN_PROJECT, LONG_AGO, distance
from pytest_opprof.baselines.store import Entry
from pytest_opprof.errors import MissingBaselineError, UsageError
from pytest_opprof.results.files import read_run
from pytest_opprof.results.run import Environment, Run
from pytest_opprof.wording import counted, listed

# The relation of a run that is not known to be an ancestor of HEAD.
LATEST = "latest"
_OF_NO_PROJECT = "an older release stored it without its project"
CLOCKS_APART = timedelta(minutes=1)  # between two machines


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The baseline of a session."""

    run: Run
    label: str  # its text in a header: ``main@1a2b3c4 (merge-base, 2 days old)``
    notes: tuple[str, ...] = ()  # sentences on unexpected facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A stored run that a session could be compared with, before it is read."""

    entry: Entry  # its place in the store
    relation: str  # its commit's relation to the one checked out: ``merge-base``, ``nearest ancestor``
    note: str = ""  # an unexpected fact; may be empty


def resolve_baseline(
    store: Archive,
    wanted: str,
    *,
    repository: Path,
    now: datetime,
    here: Environment,
    start: str | None = None,
) -> Resolved:
    """The run stored for the merge-base of HEAD and a branch, else for its nearest ancestor, else the latest.

    If that run differs from here in what counts depend on, the nearest that does not is taken instead; but an
    ancestor is never replaced by a run that is not one. For arguments and errors see `candidates`.
    """
    found = candidates(store, wanted, repository=repository, here=here, start=start)
    first = next(found)
    nearest = resolved(first, store=store, now=now)
    different = differences_of_counts(nearest.run.environment, here)
    if not different:
        return nearest
    others = {one.entry: one for one in found if one.relation != LATEST or first.relation == LATEST}
    what = f"{nearest.run.title} was measured in another environment ({different})"
    like = nearest_like(here, others, store=store)
    if like is None:
        note = f"{what}. No nearby run matches, so metrics that depend on the environment are inconclusive"
        return replace(nearest, notes=(*nearest.notes, note))
    taken = resolved(others[like], store=store, now=now)
    return replace(
        taken, notes=(*taken.notes, f"{what}: using {taken.run.title}, the nearest run that matches")
    )


def candidates(
    store: Archive, wanted: str, *, repository: Path, here: Environment, start: str | None = None
) -> Iterator[Candidate]:
    """The possible runs, nearest first; at least one, else it raises `MissingBaselineError`. None is read.

    First those of the merge-base and the commits before it, then, for a name, the others, latest first. In
    each group those of the environment's own family come first.

    Args:
        wanted: A baseline's name, which is usually a branch's, or any revision that git knows.
        repository: A folder in the repository, or outside of any.
        here: The environment to compare with, as far as it is known.
        start: The commit that the work began from, if known; else git gives the merge-base of HEAD, which is
            wrong if the work is not checked out.
    """
    git = Git(repository)
    if entries := store.entries(wanted):
        # Counts in the work tree are its author's claim, which the review checks. In another store they are a
        # fixed copy, while runs are saved beside it.
        if isinstance(store.store, CountsStore):
            yield from (Candidate(entry=entry, relation="reviewed counts") for entry in entries)
        else:
            yield from _of_name(_alike_first(entries, here), wanted, git=git, start=start)
    elif older := store.older_entries(wanted):
        for one in _of_name(_alike_first(older, here), wanted, git=git, start=start):
            yield replace(one, note="; ".join(filter(None, (one.note, _OF_NO_PROJECT))))
    else:
        yield from _of_revision(store, wanted, git=git, here=here, start=start)


def resolved(candidate: Candidate, *, store: Archive, now: datetime) -> Resolved:
    """Read a candidate; `now` is for its age."""
    run = store.load(candidate.entry)
    notes = [candidate.note] if candidate.note else []
    if candidate.entry.is_dirty:
        notes.append(f"{run.title} was measured with uncommitted changes")
    age = "" if run.created == LONG_AGO else f", {_age(now - run.created)}"
    return Resolved(run=run, label=f"{run.title} ({candidate.relation}{age})", notes=tuple(notes))


def _age(age: timedelta) -> str:
    """How old something is; says so if it is newer than now, because a clock was set back."""
    if age < -CLOCKS_APART:
        return f"dated {age_in_words(-age)} ahead of this clock"
    return f"{age_in_words(age)} old"


def is_path(text: str) -> bool:
    """Whether a command's argument is an existing file, and not a baseline's name, as a folder's may be."""
    # pathlib raises if a text is too long for a file's name, or a folder is unreadable.
    return os.path.exists(text) and not os.path.isdir(text)  # noqa: PTH110, PTH112


def find_run(text: str, *, store: Archive) -> Run:
    """The run that a command's argument names: a file, a baseline's name, or ``name@commit``.

    Raises `MissingBaselineError` if it is none, and `UsageError` for several commits or environments.
    """
    if is_path(text):
        return read_run(Path(text))
    try:
        return store.load(find_entry(text, store=store))
    except MissingBaselineError as error:
        what = "it is a folder" if os.path.isdir(text) else "there is no such file"  # noqa: PTH112
        raise MissingBaselineError(f"{text}: {what}, and {error}") from error


def find_base(
    text: str, head: Run, *, store: Archive, repository: Path, now: datetime
) -> tuple[Run, tuple[str, ...]]:
    """The base for a command's comparison, and notes on how it was found.

    For a baseline's name it is the run that a session with the head's commit and environment would take;
    later commits of a branch of that name do not count. Otherwise it is `find_run`'s, whose errors it raises.
    """
    newest = find_run(text, store=store)
    if is_path(text) or text not in store.names():
        return newest, ()
    at = head.commit.id if head.commit else None
    start = at and (Git(repository).branch_point(at, text) or at)
    found = resolve_baseline(store, text, repository=repository, now=now, here=head.environment, start=start)
    if found.run == newest:
        return newest, ()
    return found.run, (f"compared with {found.label}", *found.notes)


def known_names(asked: Sequence[str], *, store: Archive) -> Sequence[str]:
    """These names, without any all of the store's; raises `MissingBaselineError` for one that it lacks."""
    names = store.names()
    for name in asked:
        if name not in names:
            raise MissingBaselineError(_no_baseline(name, store, names))
    return asked or names


def find_entries(text: str, *, store: Archive) -> tuple[Entry, ...]:
    """The runs of a name, or of ``name@commit`` by the key's beginning: at least one, newest first.

    ``name@commit+dirty``, as headers and lists have it, is the run with uncommitted changes.

    Raises `MissingBaselineError` if there is none, and `UsageError` if several commits, or times, begin so.
    """
    name, _, commit = text.rpartition("@")
    found = store.entries(text)
    if not found and name and commit:
        commit, _, family = commit.partition(FAMILY)
        digits = commit.removesuffix("+dirty").removesuffix("-dirty")
        found = tuple(
            entry
            for entry in store.entries(name)
            if entry.key.startswith(digits) and family in {"", entry.family}
            if entry.is_dirty or digits == commit
        )
        begun = dict.fromkeys(entry.commit or entry.key.partition(FAMILY)[0] for entry in found)
        if len(begun) > 1:
            names = listed([f"{name}@{one}" for one in begun], most=3)
            raise UsageError(f"{text} is not unique. Name one: {names}")
    if not found:
        raise MissingBaselineError(_no_baseline(text, store, store.names()))
    return found


def find_entry(text: str, *, store: Archive) -> Entry:
    """The newest run of a name or of ``name@commit``, of one environment family; see `find_entries`.

    If the commit has runs of several families, and none is named, it raises `UsageError`.
    """
    newest, *others = found = find_entries(text, store=store)
    if any(newest.commit == entry.commit and newest.family != entry.family for entry in others) and (
        newest.name != store.kept_as(text)
    ):
        families = {entry.family: entry for entry in found if entry.commit == newest.commit}
        names = ", ".join(f"{text}{FAMILY}{family}" for family in sorted(filter(None, families)))
        raise UsageError(f"{text} has runs of {len(families)} environments. Name one: {names}")
    return newest


def _of_name(entries: tuple[Entry, ...], wanted: str, *, git: Git, start: str | None) -> Iterator[Candidate]:
    head = git.head()
    if head is None and start is None:
        why = git.problem or "the repository has no commit yet"
        note = f"using the latest run named {wanted!r}: {why}"
        yield from (Candidate(entry=entry, relation=LATEST, note=note) for entry in entries)
        return
    tip = git.commit_of(wanted)
    at_start = "merge-base" if tip or start else "this commit"
    of_what = start[:SHORT] if start else "HEAD"
    if start is None and head is not None:
        start = git.branch_point(head.id, wanted) or head.id
    near = list(nearest_first(entries, _history(start, git=git)))
    for entry, passed in near:
        yield Candidate(entry=entry, relation="nearest ancestor" if passed else at_start)
    known = {entry for entry, _ in near}
    cut_off = cut_off_history(git)
    for entry in entries:
        if entry not in known:
            what = why_no_ancestor(entry, f"{of_what}{cut_off}")
            note = f"using the latest run named {wanted!r}: {what}"
            yield Candidate(entry=entry, relation=LATEST, note=note)


def _history(start: str | None, *, git: Git) -> list[str]:
    """A commit and its ancestors, nearest first; only itself if git does not have it."""
    return [] if start is None else git.ancestors(start) or [start]


def _of_revision(
    store: Archive,
    wanted: str,
    *,
    git: Git,
    here: Environment,
    start: str | None,
) -> Iterator[Candidate]:
    head, tip, names = git.head(), git.commit_of(wanted), store.names()
    if head is None or tip is None:
        raise MissingBaselineError(f"{_no_baseline(wanted, store, names)}. {_remedy(wanted, store)}")
    own = (name for name in names if IN_PROJECT not in name)
    entries = [entry for name in own for entry in store.entries(name)]
    start = start or git.branch_point(head.id, wanted) or tip
    near = list(nearest_first(_alike_first(newest_first(entries), here), _history(start, git=git)))
    for entry, passed in near:
        yield Candidate(entry=entry, relation="nearest ancestor" if passed else "merge-base")
    if not near:
        raise MissingBaselineError(
            f"{_no_baseline(wanted, store, names)}, and no run of commit {start[:SHORT]} or one before it"
            f"{cut_off_history(git)}. {_remedy(wanted, store)}"
        )


def _alike_first(entries: Iterable[Entry], here: Environment) -> tuple[Entry, ...]:
    """The runs of an environment's own family first, then those that may compare with it, then the others."""
    return tuple(sorted(entries, key=lambda entry: distance(entry.family, here)))


def _remedy(wanted: str, store: Archive) -> str:
    hint = store.store.hint
    fetch = f"Fetch what others have recorded: {hint}; or record" if hint else "Record"
    return f"{fetch} one on that branch: pytest --opprof-save={wanted}"


def _no_baseline(wanted: str, store: Archive, names: tuple[str, ...]) -> str:
    has = f"it has: {', '.join(names)}" if names else "it is empty"
    elsewhere = [name for name in names if name.endswith(f"{IN_PROJECT}{wanted}")]
    if elsewhere:
        has = f"other projects have it. Name one: {', '.join(elsewhere)}"
    return f"no baseline {wanted!r} in {store.uri} ({has})"


def age_in_words(age: timedelta) -> str:
    """``5 minutes``, ``2 days``; never negative, even if a clock runs behind."""
    seconds = max(age.total_seconds(), 0)
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        count = int(seconds // length)
        if count:
            return counted(count, unit)
    return "less than a minute"
