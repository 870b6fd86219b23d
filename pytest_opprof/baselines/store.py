"""What every kind of baseline store can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from pytest_opprof.results.merge import Collected
    from pytest_opprof.results.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A stored run, before it is read.

    Attributes:
        name: the baseline's name.
        key: what the run is kept under: a commit, ``<commit>-dirty``, or a time.
        commit: the commit in the key; None for a run without one.
        is_dirty: whether the commit had uncommitted changes.
        created: when the run was measured.
        path: its file.
    """

    name: str
    key: str
    commit: str | None
    is_dirty: bool
    created: datetime
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What a save did.

    Attributes:
        path: the file; None where there was nothing to save.
        run: the run as it was stored, with what was carried over from an earlier one.
        notes: sentences for the user.
    """

    path: Path | None
    run: Run
    notes: tuple[str, ...] = ()


class BaselineStore(Protocol):
    """A place that keeps runs by name."""

    @property
    def uri(self) -> str:
        """The store as users write it: ``dir:.opprof``."""

    def names(self) -> tuple[str, ...]:
        """The names that have at least one run, in alphabetical order."""

    def entries(self, name: str) -> tuple[Entry, ...]:
        """The runs of a name, newest first."""

    def load(self, entry: Entry) -> Run:
        """Read a run.

        Raises:
            DocumentError: the file holds no run that this release can use.
            StoreError: the file cannot be read.
        """

    def save(self, name: str, run: Run, *, collected: Collected) -> Saved:
        """Keep a run under a name, in place of an earlier run of the same commit.

        Tests of the earlier run that did not run this time, and still exist, are kept.

        Raises:
            UsageError: the name cannot be one.
            StoreError: the store cannot be written; what it held is as it was.
            DocumentError: the file that would be replaced is damaged.
        """
