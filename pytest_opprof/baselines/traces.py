"""Traces of tests for looking at regressions: the base's beside the baseline, and pairs.

A save's traces are in the folder of the store, as ``traces/saved/<test>.<run>.json.gz``, or in the project's
if the store is not a folder. A failed gate has a pair in the project's folder,
``.opprof/traces/<test>.{base,head}.json.gz``. Each kind has a budget, goes into no store, and is ignored by
git.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_opprof.baselines.archive import Archive
from pytest_opprof.baselines.directory import DirectoryStore
from pytest_opprof.baselines.folder import FOLDER
from pytest_opprof.baselines.keys import TRACES
from pytest_opprof.errors import StoreError
from pytest_opprof.results.files import shown, store_errors, write_bytes
from pytest_opprof.results.names import trace_stem
from pytest_opprof.results.run import Run, TestResult
from pytest_opprof.units import format_bytes
from pytest_opprof.wording import listed

DEFAULT_BUDGET: Final = 64 << 20
PROJECT_TRACES: Final = FOLDER / TRACES
SUFFIX: Final = ".json.gz"
SIDES: Final = ("base", "head")
_SAVED: Final = "saved"
_KEPT_OF_A_TEST: Final = 5
_MOST_NAMES: Final = 3
# A file's time may be as old as the system's last tick.
_TICK_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTraces:
    """The traces of saves, beside the baselines of a folder."""

    folder: Path
    budget: int  # their most bytes together; 0 keeps none

    def of(self, test: TestResult, run: Run) -> Path | None:
        """The trace of a stored test; None without one of just that measurement."""
        path = self._path(test.node_id, test.carried_from.run_id if test.carried_from else run.run_id)
        return path if path.is_file() else None

    def keep(self, measured: Mapping[str, Path], run: Run) -> tuple[str, ...]:
        """Move the traces of a stored run's tests here, and remove older ones; says if some were not kept."""
        saved = {test.node_id for test in run.tests if test.carried_from is None}
        files = [
            (path.stat().st_size, node_id, path) for node_id, path in measured.items() if node_id in saved
        ]
        room, left_out = self.budget, []
        kept: set[Path] = set()
        try:
            with store_errors(self.folder, "cannot be written"):
                ignored_by_git(self.folder)
                (self.folder / _SAVED).mkdir(exist_ok=True)
                for size, node_id, path in sorted(files):  # so that the largest are left out
                    if size > room:
                        left_out.append(node_id)
                        continue
                    room -= size
                    target = self._path(node_id, run.run_id)
                    shutil.move(path, target)
                    kept.add(target)
                self._let_go(kept, room=room)
        except StoreError as error:
            return (f"no traces were stored: {error}",)
        return (_left_out(left_out, budget=self.budget),) if left_out else ()

    def _path(self, node_id: str, run_id: str) -> Path:
        return self.folder / _SAVED / f"{trace_stem(node_id)}.{run_id}{SUFFIX}"

    def _let_go(self, kept: set[Path], *, room: int) -> None:
        """Remove the oldest beyond the budget, and all but the latest of a test."""
        of_test = Counter(map(_stem, kept))
        for path, size in _newest_first((self.folder / _SAVED).glob(f"*{SUFFIX}")):
            if path in kept:
                continue
            of_test[_stem(path)] += 1
            if size > room or of_test[_stem(path)] > _KEPT_OF_A_TEST:
                path.unlink(missing_ok=True)
            else:
                room -= size


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePairs:
    """Pairs of traces, base and head, of regressed tests."""

    folder: Path
    budget: int  # their most bytes together; 0 keeps none
    since_ns: int  # pairs older than this, in nanoseconds since the epoch, make room for new ones
    is_named: bool = False  # the user named the folder; it is not the project's own

    def path(self, node_id: str, side: str) -> Path:
        """The path of a side's trace of a test, if any."""
        return self.folder / f"{trace_stem(node_id)}.{side}{SUFFIX}"

    def put(self, node_id: str, *, base: Path | None, head: Path) -> str:
        """Keep a pair, replacing the test's earlier one; gives a sentence on why it was not, else nothing.

        The base's trace, if there is one, is copied; the head's is moved. Raises `StoreError`.
        """
        self.drop(node_id)
        with store_errors(self.folder, "cannot be written"):
            needed = head.stat().st_size + (base.stat().st_size if base else 0)
            if not self._make_room(needed):
                head.unlink()
                return _left_out([node_id], budget=self.budget)
            self.folder.mkdir(parents=True, exist_ok=True)
            if not self.is_named:
                ignored_by_git(self.folder)
            shutil.move(head, self.path(node_id, "head"))
            if base is not None:
                shutil.copyfile(base, self.path(node_id, "base"))
        return ""

    def drop(self, node_id: str) -> None:
        """Remove a test's outdated pair of an earlier session."""
        for side in SIDES:
            with contextlib.suppress(OSError):
                self.path(node_id, side).unlink()

    def _make_room(self, needed: int) -> bool:
        """Whether so many bytes fit, after removing pairs of earlier sessions."""
        there = list(_newest_first(path for side in SIDES for path in self.folder.glob(f"*.{side}{SUFFIX}")))
        used = needed + sum(size for _, size in there)
        for path, size in reversed(there):
            if used <= self.budget:
                break
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime_ns < self.since_ns:
                    path.unlink()
                    used -= size
        return used <= self.budget


def traces_of(archive: Archive, *, root: Path, budget: int) -> SavedTraces:
    """The traces of an archive's runs: in its folder, or in the project if it has none."""
    store = archive.store
    folder = store.folder / TRACES if isinstance(store, DirectoryStore) else root / PROJECT_TRACES
    return SavedTraces(folder=folder, budget=budget)


def project_pairs(root: Path, *, budget: int, named: Path | None = None) -> TracePairs:
    """The pairs in the project's or the user's named folder; present ones make room for new ones."""
    since_ns = time.time_ns() - _TICK_NS
    folder = named or root / PROJECT_TRACES
    return TracePairs(folder=folder, budget=budget, since_ns=since_ns, is_named=named is not None)


def pair_words(node_id: str, pairs: TracePairs, *, missing: str, tests: Iterable[str] = ()) -> str:
    """The path of a test's pair, the command that shows it, and ``missing`` if the base has no trace.

    The command tells this test from the other ``tests`` that may get a pair.
    """
    sides = [side for side in SIDES if pairs.path(node_id, side).exists()]
    which = "{" + ",".join(sides) + "}" if len(sides) > 1 else sides[0]
    stem, folder = trace_stem(node_id), shown(pairs.folder)
    name = stem.rpartition("-")[0]
    # Files have other letters than a test's name may have, and a test of another file may have this name.
    others = {*map(trace_stem, tests), *map(_stem, pairs.folder.glob(f"{name}-*{SUFFIX}"))} - {stem}
    is_only = not any(other.rpartition("-")[0] == name for other in others)
    called = name if is_only and node_id.endswith(f"::{name}") else stem
    where = f" --traces={shlex.quote(folder)}" if pairs.is_named else ""
    told = f"{folder}/{stem}.{which}{SUFFIX}   (opprof view {called}{where})"
    return told if "base" in sides else f"{told}; {missing}"


def ignored_by_git(folder: Path) -> None:
    """Make a folder whose content git ignores."""
    ignore = folder / ".gitignore"
    if not ignore.exists():
        write_bytes(ignore, b"*\n")


def _stem(path: Path) -> str:
    """A test's part of a saved trace's name, which may have dots itself."""
    return path.name.removesuffix(SUFFIX).rpartition(".")[0]


def _newest_first(paths: Iterable[Path]) -> list[tuple[Path, int]]:
    found: list[tuple[os.stat_result, Path]] = []
    for path in paths:
        with contextlib.suppress(OSError):  # another process made room
            found.append((path.stat(), path))
    found.sort(key=lambda one: (one[0].st_mtime_ns, one[1].name), reverse=True)
    return [(path, status.st_size) for status, path in found]


def _left_out(node_ids: list[str], *, budget: int) -> str:
    names = listed(node_ids, most=_MOST_NAMES)
    room = f"{format_bytes(budget)} of opprof_trace_budget"
    return f"no trace of {names} was stored: it does not fit into the {room}"
