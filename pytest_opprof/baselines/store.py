"""What every kind of baseline store does: list, read and atomically change the runs of a name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pytest_opprof.results.run import Run

_URI = re.compile(r"([a-z][a-z0-9+.-]*):(.*)", re.DOTALL)


def kind_and_place(uri: str) -> tuple[str, str]:
    """The kind in a store's URI, and the rest; a path alone and ``file://`` are a folder's."""
    found = _URI.fullmatch(uri)
    kind, rest = (found[1], found[2]) if found else ("dir", uri)
    if kind == "file" and rest.startswith("//"):
        # A folder of this machine has a store with stronger promises than fsspec's files.
        return "dir", rest.removeprefix("//")
    return kind, rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A stored run, before it is read."""

    name: str  # the baseline's name in the store, with its project if that is not the store's own
    # The run's key: a commit, ``<commit>-dirty`` or a time, then ``_`` and the environment family; or
    # `keys.REVIEWED`.
    key: str
    family: str  # the environment family in the key; empty for a run that an older release stored
    commit: str | None  # the commit in the key; None for a run without one
    is_dirty: bool
    created: datetime  # when the run was measured
    place: str  # where users find it: a file, a path in a git ref, an address
    # The store's names of its documents; several after simultaneous saves of one commit.
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A run to be stored."""

    key: str
    created: datetime  # when it was measured
    data: bytes  # its document, not compressed


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of a name's runs."""

    puts: tuple[Put, ...] = ()  # new runs; each replaces the entry of its key
    drops: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The result of a change."""

    places: tuple[str, ...]  # where each put is now, in the order of the puts
    notes: tuple[str, ...] = ()  # sentences on replaced and dropped runs that stay


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """The result of a save."""

    place: str | None  # its place now; None if there was nothing to save
    run: Run  # the stored run, with tests carried over from an earlier one
    notes: tuple[str, ...] = ()


class BaselineStore(Protocol):
    """A place that keeps documents by name and key. `archive.Archive` knows what they mean.

    If it cannot be read or written, each method raises `StoreError`.
    """

    @property
    def uri(self) -> str:
        """The store as users write it, ``dir:.opprof``; an address without its password."""

    @property
    def hint(self) -> str:
        """A command that may fetch missing runs; empty without one."""

    def names(self) -> tuple[str, ...]:
        """The names that have at least one run, in any order."""

    def entries(self, name: str) -> tuple[Entry, ...]:
        """The runs of a name, one of each key, in any order."""

    def read(self, entry: Entry) -> tuple[bytes, ...]:
        """The documents of an entry, compressed or not; several after simultaneous saves."""

    def change(self, name: str, plan: Callable[[tuple[Entry, ...]], Change]) -> Changed:
        """Apply ``plan`` to the present entries, so that no other writer's run is lost.

        After an error the store is unchanged, or the message says what is done.
        """
