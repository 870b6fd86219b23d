"""Runs by name in a store of any kind: save, join, carry over, prune and copy them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_opprof.baselines.ancestry import (
    SHORT,
    cut_off_history,
    nearest_first,
    newest_first,
    why_no_ancestor,
)
from pytest_opprof.baselines.counts import CountsStore, reviewable
from pytest_opprof.baselines.directory import DirectoryStore
from pytest_opprof.baselines.environment_match import environment_of
from pytest_opprof.baselines.git import Git
from pytest_opprof.baselines.keys import (
    FAMILY,
    IN_PROJECT,
    KEPT_RUNS,
    REVIEWED,
    check_name,
    family_in,
    family_of,
    is_name,
    joins,
    key_of,
    old_key_of,
)
from pytest_opprof.baselines.store import BaselineStore, Change, Entry, Put, Saved, kind_and_place
from pytest_opprof.errors import DocumentError, MissingBaselineError, UsageError
from pytest_opprof.results.files import run_from_bytes, run_to_bytes, unpacked
from pytest_opprof.results.merge import Collected, joined, left_behind, merged
from pytest_opprof.results.run import Run
from pytest_opprof.wording import counted


def open_store(uri: str, *, root: Path, project: Path | None = None) -> Archive:
    """The store that a URI names, for the project whose rootdir is ``project`` (default: ``root``).

    Args:
        uri: ``dir:PATH`` or a path alone, ``counts:PATH``, ``git:`` or ``git:PATH``, or an address that
            fsspec knows, such as ``s3://bucket/folder``. Raises `UsageError` if it knows none.
        root: The folder that a relative path starts from.
    """
    project = project or root
    store, place, home = _store(uri, root=root), Git(project).prefix, ""
    if isinstance(store, DirectoryStore | CountsStore):
        home = place if store.folder.resolve().is_relative_to(project.resolve()) else ""
    return Archive(store, project=place, home=home, folder=project)


def _store(uri: str, *, root: Path) -> BaselineStore:
    kind, rest = kind_and_place(uri)
    if kind == "git":
        from pytest_opprof.baselines.git_ref import GitRefStore  # noqa: PLC0415  # each kind where it is used

        return GitRefStore(root / rest, uri=uri)
    if kind in {"dir", "counts"}:
        if not rest:
            raise UsageError(f"--opprof-store={uri}: the path is missing: write it like {kind}:.opprof")
        if kind == "counts":
            return CountsStore(root / rest, uri=uri)
        return DirectoryStore(root / rest, uri=f"dir:{rest}")
    from pytest_opprof.baselines.remote import open_remote  # noqa: PLC0415

    return open_remote(uri)


@dataclass(frozen=True, slots=True)
class Archive:
    """Runs by name in a store, as one project sees them.

    This project's names stand alone. Another project's have the project before a colon, ``packages/a:main``;
    the project at the repository's top is empty there, ``:main``.

    If the store cannot be read or written, methods raise `StoreError`; it is unchanged, except by `take`.
    """

    store: BaselineStore
    project: str = ""  # Pytest's rootdir as seen from the repository's top; empty at the top
    home: str = ""  # the project whose names the store keeps without one
    folder: Path = Path()  # Pytest's rootdir, in the repository that has the runs' commits

    @property
    def uri(self) -> str:
        """The store as users write it, ``dir:.opprof``; an address without its password."""
        return self.store.uri

    @property
    def is_committed(self) -> bool:
        """Whether its runs are files of the work tree, which merge with a branch."""
        return self.uri.startswith("counts:")

    def names(self) -> tuple[str, ...]:
        """The names that have at least one run, in alphabetical order."""
        found = (kept for kept in self.store.names() if is_name(_parted(kept)[1]))
        return tuple(sorted(self.name_of(kept) for kept in found))

    def entries(self, name: str) -> tuple[Entry, ...]:
        """The runs of a name, newest first."""
        return newest_first(self.store.entries(self.kept_as(name))) if is_name(_parted(name)[1]) else ()

    def older_entries(self, name: str) -> tuple[Entry, ...]:
        """The runs of a name from older releases, which did not separate projects, newest first."""
        entries = self.store.entries(name) if self.project != self.home and is_name(name) else ()
        return newest_first(entry for entry in entries if not entry.family and entry.key != REVIEWED)

    def name_of(self, kept: str) -> str:
        """This project's name for a name of the store."""
        project, name = _parted(kept)
        project = self.home if project is None else project
        return name if project == self.project else f"{project}{IN_PROJECT}{name}"

    def kept_as(self, name: str) -> str:
        """The store's name for a name of this project, or one with a project before it."""
        project, name = _parted(name)
        project = self.project if project is None else project
        return name if project == self.home else f"{project}{IN_PROJECT}{name}"

    def load(self, entry: Entry) -> Run:
        """Read a run; raises `DocumentError` if the file holds none that this release can use."""
        parts = [run_from_bytes(part, where=entry.place) for part in self.store.read(entry)]
        # The place decides the name: a folder may have been copied or renamed.
        return replace(joined(parts), name=self.name_of(entry.name))

    def save(
        self,
        name: str,
        run: Run,
        *,
        collected: Collected,
        renamed: Callable[[Run], Run] = lambda earlier: earlier,
    ) -> Saved:
        """Store a run under a name, replacing the earlier run of its commit and environment family.

        Tests of the earlier run that still exist but did not run this time are kept. If that run is damaged,
        or a ``counts:`` file is, it raises `DocumentError`.

        Args:
            renamed: Gives an earlier run its tests' present names.
        """
        check_name(name, where="baseline ")
        run = replace(run, name=name)
        left_out = sum(not test.is_usable for test in run.tests)
        notes = [f"{left_out} of {len(run.tests)} tests not saved: they did not pass or were not measured"]
        notes = notes if left_out else []
        if left_out == len(run.tests):
            return Saved(place=None, run=replace(run, tests=()), notes=(*notes, "nothing was saved"))
        saving = _Saving(archive=self, run=run, collected=collected, renamed=renamed, stored=run)
        changed = self.store.change(self.kept_as(name), saving.plan)
        (place,) = changed.places
        if self.is_committed:
            pass  # the file has neither commit nor time
        elif run.commit is None:
            notes.append("there is no commit, so the run is stored under its time")
        elif run.commit.dirty:
            notes.append("the work tree has uncommitted changes, so the run is stored as '-dirty'")
        return Saved(place=place, run=saving.stored, notes=(*notes, *saving.notes, *changed.notes))

    def remove(self, name: str, *, is_meant: Callable[[Entry], bool]) -> tuple[Entry, ...]:
        """Remove and return runs of a name."""
        gone: tuple[Entry, ...] = ()

        def plan(entries: tuple[Entry, ...]) -> Change:
            nonlocal gone
            gone = tuple(entry for entry in newest_first(entries) if is_meant(entry))
            return Change(drops=gone)

        self.store.change(self.kept_as(name), plan)
        return gone

    def prune(self, name: str, *, keep: int, is_gone: Callable[[str], bool]) -> tuple[Entry, ...]:
        """Remove and return all but a family's newest runs, so many, and the runs of commits that are gone.

        A run that is newer than all runs of known commits stays: its commit may not be fetched yet.
        """
        entries = self.entries(name)
        lost = {entry.commit for entry in entries if entry.commit and is_gone(entry.commit)}
        known = [entry.created for entry in entries if entry.commit and entry.commit not in lost]
        old = _past(keep, entries)
        dropped = {
            entry.key
            for entry in entries
            if entry.key in old or (entry.commit in lost and known and entry.created < max(known))
        }
        return self.remove(name, is_meant=lambda entry: entry.key in dropped) if dropped else ()

    def take(self, other: Archive, names: Sequence[str]) -> tuple[str, ...]:
        """Copy another archive's runs, join those that both have, and give sentences on what was done.

        If a run here that must be joined is damaged, it raises `DocumentError`; without a name,
        `MissingBaselineError`.
        """
        if not names:
            raise MissingBaselineError(f"{other.uri} has no baselines to copy")
        notes: list[str] = []
        for name in names:
            documents, problems = _documents_of(other, name)
            take = self._take_newest if self.is_committed else self._take
            notes += (*take(name, documents), *problems)
        return tuple(notes)

    def _take_newest(self, name: str, documents: Sequence[tuple[Entry, tuple[bytes, ...]]]) -> list[str]:
        """Join another archive's newest run of a name with the only one here, as a save would."""
        if not documents:
            return [f"{name}: 0 runs copied"]
        entry, parts = documents[0]
        newest = joined([run_from_bytes(part, where=entry.place) for part in parts])
        notes: list[str] = []

        def plan(entries: tuple[Entry, ...]) -> Change:
            present = self.load(entries[0]) if entries else None
            result = merged(present, newest, collected=Collected())
            data = reviewable(result.run, name=self.kept_as(name))
            is_new = not entries or self.store.read(entries[0]) != (data,)
            notes[:] = [f"{name}: {counted(int(is_new), 'run')} copied", *(result.notes if is_new else ())]
            return Change(puts=(Put(key=REVIEWED, created=newest.created, data=data),) if is_new else ())

        self.store.change(self.kept_as(name), plan)
        return notes

    def _take(self, name: str, documents: Iterable[tuple[Entry, tuple[bytes, ...]]]) -> list[str]:
        """Copy another archive's runs of a name, and give sentences on copied and joined ones."""
        notes: list[str] = []

        def plan(entries: tuple[Entry, ...]) -> Change:
            ours = {entry.key: entry for entry in entries}
            puts, told = [], []
            for entry, parts in documents:
                mine = ours.get(entry.key)
                if mine is None and len(parts) == 1:
                    puts.append(Put(key=entry.key, created=entry.created, data=parts[0]))
                    continue
                here = self.store.read(mine) if mine else ()
                plain = [unpacked(part, where=mine.place) for part in here] if mine else []
                if sorted(plain) == sorted(parts):
                    continue
                # Of two runs with one time, such as reviewed counts, the first wins: so the other's go first.
                put, note = _joined(mine or entry, [*parts, *plain], name=name)
                if put.data not in plain:
                    puts.append(put)
                    told.append(note)
            notes[:] = [f"{name}: {counted(len(puts), 'run')} copied", *told]
            kept = {put.key for put in puts}
            others = [entry for entry in entries if entry.key not in kept]
            old = _past(KEPT_RUNS, _by_time([*others, *puts]))
            return Change(
                puts=tuple(put for put in puts if put.key not in old),
                drops=tuple(entry for entry in others if entry.key in old),
            )

        changed = self.store.change(self.kept_as(name), plan)
        return [*notes, *changed.notes]


@dataclass(slots=True, kw_only=True)
class _Saving:
    """One save, planned again from the store's content whenever another writer was faster."""

    archive: Archive
    run: Run
    collected: Collected
    renamed: Callable[[Run], Run]
    stored: Run
    notes: tuple[str, ...] = ()

    def plan(self, entries: tuple[Entry, ...]) -> Change:
        ordered = newest_first(entries)
        earlier = self._earlier(ordered)
        previous, note = self._previous(ordered, earlier)
        result = merged(previous, self.run, collected=self.collected)
        has_kept = any(test.carried_from for test in result.run.tests)
        self.stored, self.notes = result.run, result.notes
        if note and (has_kept or previous is None):
            self.notes += (note,)
        key = key_of(result.run)
        # The saved run stays, however old: its user measures an old commit.
        others = [entry for entry in ordered if entry.key != key]
        own = [entry for entry in others if entry.family == family_in(key) and entry != earlier]
        old = _past(KEPT_RUNS - 1, _by_time(own)) | ({earlier.key} if earlier else set())
        put = Put(key=key, created=result.run.created, data=run_to_bytes(result.run, where=key))
        return Change(puts=(put,), drops=tuple(entry for entry in others if entry.key in old))

    def _earlier(self, entries: tuple[Entry, ...]) -> Entry | None:
        """The run of this commit and environment family, else one that it may join."""
        exact = [entry for entry in entries if entry.key == key_of(self.run)]
        measured = old_key_of(self.run)
        of_commit = (entry for entry in entries if entry.key.partition(FAMILY)[0] == measured)
        return next(iter(exact), None) or next(filter(self._joins, of_commit), None)

    def _previous(self, entries: tuple[Entry, ...], earlier: Entry | None) -> tuple[Run | None, str]:
        """The run to carry tests over from (this commit's, the nearest ancestor's or the latest); a note."""
        if earlier is not None:
            # It would be replaced, so a damaged one is an error.
            run = self.archive.load(earlier)
            # Its commit has the new names already, and two that are swapped would be swapped back.
            return (self.renamed(run) if earlier.is_dirty else run), ""
        near = self._near(entries)
        found = next(filter(self._joins, (*near, *entries)), None)
        try:
            if found is None:
                return None, self._left_behind((*near, *entries))
            previous = self.renamed(self.archive.load(found))
        except DocumentError as error:
            if self.archive.is_committed:
                raise  # The only file would be replaced.
            return None, f"no test was kept from the previous run: {error}"
        return previous, "" if found in near else self._doubt(found)

    def _left_behind(self, entries: tuple[Entry, ...]) -> str:
        """A note on the tests that did not run and that only another environment family has."""
        if not entries:
            return ""
        other = self.renamed(self.archive.load(entries[0]))
        ran = {test.node_id for test in self.run.tests if test.is_usable}
        there = [test.node_id for test in other.tests if test.node_id not in ran]
        left = [node_id for node_id in there if not self.collected.lacks(node_id)]
        what = f"{family_of(other.environment)} -> {family_of(self.run.environment)}"
        return left_behind(other, left, what=what) if left else ""

    def _near(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        """The runs of this commit and its ancestors, nearest first; counts in the work tree are its own."""
        if self.archive.is_committed:
            return entries
        commits = Git(self.archive.folder).ancestors(self.run.commit.id) if self.run.commit else []
        return tuple(entry for entry, _ in nearest_first(entries, commits))

    def _doubt(self, entry: Entry) -> str:
        git, commit = Git(self.archive.folder), self.run.commit
        why = git.problem or "this run has no commit"
        if commit and not git.problem:
            why = why_no_ancestor(entry, f"{commit.id[:SHORT]}{cut_off_history(git)}")
        return f"the tests that did not run are from the latest run named {self.run.name!r}: {why}"

    def _joins(self, entry: Entry) -> bool:
        """Whether a run may be joined with this one; an older release's run is read to find out."""
        if entry.family:
            return joins(entry.family, self.run.environment)
        environment = environment_of(entry, store=self.archive.store)
        # A damaged run may be joined: reading it reports the damage.
        return environment is None or joins(family_of(environment), self.run.environment)


def _documents_of(archive: Archive, name: str) -> tuple[list[tuple[Entry, tuple[bytes, ...]]], list[str]]:
    """An archive's entries of a name with their documents, and sentences on unreadable ones."""
    found, problems = [], []
    for entry in archive.entries(name):
        try:
            parts = tuple(unpacked(part, where=entry.place) for part in archive.store.read(entry))
            for part in parts:
                run_from_bytes(part, where=entry.place)  # unusable runs are not copied
        except DocumentError as error:
            problems.append(f"not copied: {error}")
        else:
            found.append((entry, parts))
    return found, problems


def _joined(entry: Entry, parts: list[bytes], *, name: str) -> tuple[Put, str]:
    """Join the runs of one key, and say so in a sentence; errors name the entry."""
    run = replace(joined([run_from_bytes(part, where=entry.place) for part in parts]), name=name)
    put = Put(key=entry.key, created=run.created, data=run_to_bytes(run, where=entry.key))
    which = "copied" if entry.key == REVIEWED else "later"
    return put, f"{run.title} was in both stores: they are joined, and the {which} run wins"


def _by_time(ones: Iterable[Entry | Put]) -> list[Entry | Put]:
    return sorted(ones, key=lambda one: (one.created, one.key), reverse=True)


def _past(keep: int, ones: Iterable[Entry | Put]) -> frozenset[str]:
    """The keys of all runs except the first that each environment family keeps."""
    counts: Counter[str] = Counter()
    past = []
    for one in ones:
        family = family_in(one.key)
        counts[family] += 1
        if counts[family] > keep:
            past.append(one.key)
    return frozenset(past)


def _parted(name: str) -> tuple[str | None, str]:
    """A name's project, None without one, and the name alone."""
    project, colon, alone = name.rpartition(IN_PROJECT)
    return (project if colon else None), alone
