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
from pytest_opprof.errors import DocumentError, UsageError
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
# The newest finished experiments are kept, for users who want to look at a process's run.
_MOST_FINISHED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The settings of an experiment: one with an equal plan measures the same.

    Attributes:
        base: The base's commit.
        head: The head's commit, and a digest of the uncommitted changes.
        prefix: The folder below the repository's top that pytest starts in.
        arguments: Pytest's.
        setup: The command that builds each side; "" for none.
        python: The interpreter of each side, relative to its folder; "" for ours.
        processes: Per side, in each round.
        steps: Timed steps of each test in each process.
        max_time: How much longer a test may take in a process, to find undisturbed steps, seconds.
        seed: Seed of the order of processes.
        interpreter: Ours, which measures both sides if `python` is "".
    """

    base: str
    head: str
    prefix: str
    arguments: tuple[str, ...]
    setup: str
    python: str
    processes: int
    steps: int
    max_time: float
    seed: int
    opprof_version: str
    interpreter: str = ""

    def differences(self, other: Plan) -> list[str]:
        """The names of the fields that differ."""
        return [
            field.name for field in fields(Plan) if getattr(self, field.name) != getattr(other, field.name)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """A process that died without a run.

    Attributes:
        index: The process's place in its round.
        how: How it ended, in words.
    """

    round: str
    index: int
    side: str
    how: str


class Kept:
    """An experiment's folder: its plan, the run of each finished process, and a list of those that died."""

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
        """A process's run; None if it has not been measured yet.

        Raises:
            DocumentError: The file is damaged.
            StoreError: It cannot be read.
        """
        path = self._path(round_name, turn)
        return read_run(path) if path.exists() else None

    def keep(self, round_name: str, turn: Turn, run: Run) -> None:
        """Store a process's run, atomically.

        Raises:
            StoreError: It cannot be written.
        """
        write_run(self._path(round_name, turn), run)

    def deaths(self) -> list[Death]:
        """The processes that died, in order.

        Raises:
            DocumentError: The file is damaged.
            StoreError: It cannot be read.
        """
        path = self.folder / _DEATHS
        if not path.exists():
            return []
        document = parse(read_bytes(path), where=shown(path))
        with contextlib.suppress(TypeError):
            deaths = [Death(**death) for death in document]
            if all(map(_can_be_a_death, deaths)):
                return deaths
        raise _not_ours(path, "list of crashed processes")

    def bury(self, death: Death) -> None:
        """Add a process that died.

        Raises:
            StoreError: It cannot be written.
        """
        _write(self.folder / _DEATHS, [asdict(one) for one in (*self.deaths(), death)])

    def finish(self) -> None:
        """Mark it as finished, so that `--resume` no longer finds it, and remove older finished ones.

        Raises:
            StoreError: It cannot be written.
        """
        write_bytes(self.folder / _FINISHED, b"")
        finished = [each for each in _all(self.folder.parent) if (each / _FINISHED).exists()]
        for folder in finished[_MOST_FINISHED:]:
            shutil.rmtree(folder, ignore_errors=True)

    def discard(self) -> None:
        """Remove it: nothing was measured, so there is nothing to resume."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from resuming it at the same time.

        Raises:
            UsageError: Another process holds it.
            StoreError: The folder cannot be written.
        """
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
    """Make a new experiment's folder.

    Raises:
        StoreError: It cannot be written.
    """
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
    """The experiment of this name.

    Raises:
        UsageError: There is none, or it is finished.
        OpprofError: Its plan cannot be read.
    """
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
        if _can_be_a_plan(plan):
            return Kept(folder, plan)
    raise _not_ours(path, "plan")


def _can_be_a_plan(plan: Any) -> bool:
    """Whether each field has its type, and each number is valid."""
    texts = (
        plan.base,
        plan.head,
        plan.prefix,
        plan.setup,
        plan.python,
        plan.opprof_version,
        plan.interpreter,
    )
    return (
        all(isinstance(text, str) for text in (*texts, *plan.arguments))
        and all(type(number) is int for number in (plan.processes, plan.steps, plan.seed))
        and isinstance(plan.max_time, int | float)
        and min(plan.processes, plan.steps) >= 1
        and 0 <= plan.max_time < math.inf
    )


def _can_be_a_death(death: Any) -> bool:
    texts = (death.round, death.side, death.how)
    return all(isinstance(text, str) for text in texts) and type(death.index) is int


def _not_ours(path: Path, what: str) -> DocumentError:
    return DocumentError(
        f"{shown(path)}: this is not a {what} that this release can read. The file was not used"
    )


def _all(home: Path) -> list[Path]:
    """The experiments' folders, newest first."""
    return sorted((path.parent for path in home.glob(f"*/{_PLAN}")), key=lambda path: path.name, reverse=True)


def _write(path: Path, document: Any) -> None:
    write_bytes(path, json.dumps(document, indent=1).encode() + b"\n")
