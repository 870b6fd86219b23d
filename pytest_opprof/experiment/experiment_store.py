"""An experiment's measurements on disk, so that an interrupted one can be resumed."""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pytest_opprof.baselines.folder import FOLDER
from pytest_opprof.baselines.keys import EXPERIMENTS
from pytest_opprof.errors import DocumentError, StoreError, UsageError
from pytest_opprof.experiment.interleave import Turn
from pytest_opprof.locks import hold, opened
from pytest_opprof.results.files import (
    parse,
    read_bytes,
    read_run,
    shown,
    store_errors,
    write_bytes,
    write_run,
)
from pytest_opprof.results.run import Run

_FOLDER: Final = FOLDER / EXPERIMENTS
_PLAN: Final = "plan.json"
_DEATHS: Final = "deaths.json"
_FINISHED: Final = "finished"
_LOCK: Final = "lock"
# So many of the newest finished experiments are kept, for users who want to look at a process's run, and of
# those that may be resumed.
_MOST_KEPT: Final = 5
# The types of the JSON value of a member.
_TYPES: Final = {"str": (str,), "int": (int,), "float": (int, float), "tuple[str, ...]": (tuple,)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The settings of an experiment: one with an equal plan measures the same."""

    base: str  # the base's commit
    head: str  # the head's commit, and a digest of the uncommitted changes
    prefix: str  # the folder below the repository's top that pytest starts in
    arguments: tuple[str, ...]  # Pytest's
    setup: str  # the command that builds each side; "" for none
    python: str  # the interpreter of each side, relative to its folder; "" for ours
    processes: int  # per side, in each round
    steps: int  # timed steps of each test in each process
    max_time: float  # how much longer a test may take in a process, to find undisturbed steps, seconds
    seed: int  # seed of the order of processes
    opprof_version: str
    interpreter: str = ""  # ours, which measures both sides if `python` is ""

    def differences(self, other: Plan) -> list[str]:
        """The names of the fields that differ."""
        ours, theirs = asdict(self), asdict(other)
        return [name for name in ours if ours[name] != theirs[name]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """A process that died without a run."""

    round: str
    index: int  # the process's place in its round
    side: str
    how: str  # how it ended, in words


class Kept:
    """An experiment's folder: its plan, the run of each finished process, and a list of those that died.

    A file that cannot be read or written raises `StoreError`, a damaged one `DocumentError`.
    """

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self.plan = plan

    @property
    def name(self) -> str:
        """The user's name for it, such as ``20260102-030405-1a2b``."""
        return self.folder.name

    @property
    def is_finished(self) -> bool:
        """Whether it was measured to its end."""
        return (self.folder / _FINISHED).exists()

    @property
    def done(self) -> int:
        """How many runs it has."""
        return len(list(self.folder.glob("*.json.gz")))

    def run(self, round_name: str, turn: Turn) -> Run | None:
        """A process's run; None if it has not been measured yet."""
        path = self._path(round_name, turn)
        return read_run(path) if path.exists() else None

    def keep(self, round_name: str, turn: Turn, run: Run) -> None:
        """Store a process's run, atomically."""
        write_run(self._path(round_name, turn), run)

    def deaths(self) -> list[Death]:
        """The processes that died, in order."""
        path = self.folder / _DEATHS
        if not path.exists():
            return []
        document = parse(read_bytes(path), where=shown(path))
        with contextlib.suppress(TypeError):
            deaths = [Death(**death) for death in document]
            if all(map(_has_its_types, deaths)):
                return deaths
        raise _not_ours(path, "list of crashed processes")

    def bury(self, death: Death) -> None:
        """Add a process that died."""
        _write(self.folder / _DEATHS, [asdict(one) for one in (*self.deaths(), death)])

    def finish(self) -> None:
        """Mark it as finished, so that `--resume` no longer finds it, and remove older experiments."""
        write_bytes(self.folder / _FINISHED, b"")
        others: tuple[list[Kept], list[Kept]] = [], []
        for folder in _all(self.folder.parent):
            kept = Kept(folder, self.plan)
            others[kept.is_finished].append(kept)
        for kept in (*others[False][_MOST_KEPT:], *others[True][_MOST_KEPT:]):
            with contextlib.suppress(StoreError, UsageError), kept.held():  # in use, or just removed
                kept.discard()

    def discard(self) -> None:
        """Remove it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from resuming it at the same time; raises `UsageError` if one does."""
        path = self.folder / _LOCK
        with store_errors(path, "cannot be written"):
            descriptor = opened(path)
        try:
            try:
                hold(descriptor, limit_s=0)
            except OSError as error:
                raise UsageError(f"{shown(self.folder)}: another process is already resuming it") from error
            yield
        finally:
            os.close(descriptor)

    def _path(self, round_name: str, turn: Turn) -> Path:
        return self.folder / f"{round_name}-{turn.index:04}-{turn.side}.json.gz"


def begin(root: Path, plan: Plan, *, now: datetime) -> Kept:
    """Make a new experiment's folder."""
    home = root / _FOLDER
    folder = home / f"{now.astimezone(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    with store_errors(folder, "cannot be written"):
        folder.mkdir(parents=True)
    write_bytes(home / ".gitignore", b"*\n")
    _write(folder / _PLAN, asdict(plan))
    return Kept(folder, plan)


def unfinished(root: Path) -> Iterator[Kept]:
    """The unfinished experiments, newest first; folders without a plan of this release are skipped."""
    for folder in _all(root / _FOLDER):
        with contextlib.suppress(DocumentError):
            kept = _read(folder)
            if not kept.is_finished:
                yield kept


def resumable(root: Path) -> str:
    """The unfinished experiments in words, such as ``20261125-101500-1a2b (5 of 24 processes)``."""
    return ", ".join(f"{kept.name} ({_progress(kept)})" for kept in unfinished(root)) or "none"


def _progress(kept: Kept) -> str:
    """How far it is: a confirmation, and more processes on a busy machine, come after the planned ones."""
    planned = 2 * kept.plan.processes
    return f"{kept.done} of {planned} processes" if kept.done < planned else f"{kept.done} processes"


def named(root: Path, name: str) -> Kept:
    """The experiment of this name; raises `UsageError` if there is none, or if it is finished."""
    home = root / _FOLDER
    if name not in {folder.name for folder in _all(home)}:
        raise UsageError(
            f"--resume={name}: no such experiment in {shown(home)}; unfinished: {resumable(root)}"
        )
    kept = _read(home / name)
    if kept.is_finished:
        raise UsageError(f"--resume={name}: it is finished; leave out --resume to measure again")
    return kept


def _read(folder: Path) -> Kept:
    path = folder / _PLAN
    document: Any = parse(read_bytes(path), where=shown(path))
    with contextlib.suppress(KeyError, TypeError):
        plan = Plan(**{**document, "arguments": tuple(document["arguments"])})
        if _is_valid(plan):
            return Kept(folder, plan)
    raise _not_ours(path, "plan")


def _is_valid(plan: Plan) -> bool:
    """Whether what a file says has the types and numbers of a plan."""
    return (
        _has_its_types(plan)
        and all(isinstance(text, str) for text in plan.arguments)
        and min(plan.processes, plan.steps) >= 1
        and 0 <= plan.max_time < math.inf
    )


def _has_its_types(read: Plan | Death) -> bool:
    return all(type(getattr(read, one.name)) in _TYPES[str(one.type)] for one in fields(read))


def _not_ours(path: Path, what: str) -> DocumentError:
    return DocumentError(
        f"{shown(path)}: this is not a {what} that this release can read. The file was not used"
    )


def _all(home: Path) -> list[Path]:
    """The experiments' folders, newest first."""
    return sorted((path.parent for path in home.glob(f"*/{_PLAN}")), key=lambda path: path.name, reverse=True)


def _write(path: Path, document: Any) -> None:
    write_bytes(path, json.dumps(document, indent=1).encode() + b"\n")
