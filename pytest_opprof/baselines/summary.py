"""A store's baselines by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pytest_opprof.baselines.archive import Archive
from pytest_opprof.baselines.store import Entry
from pytest_opprof.errors import DocumentError
from pytest_opprof.results.members import Document, time_to_document, to_members


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A baseline."""

    name: str
    runs: int
    newest: Entry
    tests: int | None = None  # how many tests its newest run has; None if unreadable
    fingerprint: str | None = None  # the digest of its environment; None as above
    problem: str = ""  # why it cannot be read; empty otherwise


def summaries(archive: Archive) -> Iterator[Summary]:
    """Each baseline of a store, read as far as its newest run."""
    for name in archive.names():
        entries = archive.entries(name)
        if not entries:
            continue  # just removed
        unread = Summary(name=name, runs=len(entries), newest=entries[0])
        try:
            run = archive.load(unread.newest)
        except DocumentError as error:
            yield replace(unread, problem=str(error))
        else:
            yield replace(unread, tests=len(run.tests), fingerprint=run.environment.digest)


def summary_to_document(summary: Summary) -> Document:
    """A baseline as JSON."""
    return to_members(summary, newest=entry_to_document(summary.newest), problem=summary.problem or None)


def entry_to_document(entry: Entry) -> Document:
    """A stored run as JSON."""
    return {
        "key": entry.key,
        "environment": entry.family or None,
        "commit": entry.commit,
        "dirty": entry.is_dirty,
        "created": time_to_document(entry.created),
        "place": entry.place,
    }
