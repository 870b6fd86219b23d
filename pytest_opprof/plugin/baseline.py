"""The baseline of a session, and what it saves for later ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from pytest_opprof.baselines.accepted import prune
from pytest_opprof.baselines.archive import open_store
from pytest_opprof.baselines.git import Git
from pytest_opprof.baselines.keys import check_name
from pytest_opprof.baselines.resolve import resolve_baseline
from pytest_opprof.capture import environment
from pytest_opprof.compare.gates import Gates, varying_note
from pytest_opprof.compare.renamed_tests import parse_renames, with_new_names
from pytest_opprof.errors import MissingBaselineError, OpprofError
from pytest_opprof.plugin.certify import Certified
from pytest_opprof.plugin.fresh import first_run
from pytest_opprof.plugin.options import Options
from pytest_opprof.plugin.traces import SessionTraces
from pytest_opprof.plugin.workers import Exchange
from pytest_opprof.results.files import read_run
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Commit, Environment, Run, TestResult
from pytest_opprof.wording import counted, listed

_MOST_SPENT: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What tests are compared with.

    Attributes:
        run: The stored run; None if none was requested, or none exists.
        label: Its words in the header; "" without one.
        notes: Sentences on how it was found.
        problem: Why a requested baseline does not exist; None otherwise.
        commit: The measured commit; None outside a repository, or if it is not needed.
    """

    run: Run | None = None
    label: str = ""
    notes: tuple[str, ...] = ()
    problem: str | None = None
    commit: Commit | None = None


def find_baseline(config: pytest.Config, options: Options, *, exchange: Exchange | None) -> Baseline:
    """Resolve what the user named, and refuse now what could not be saved at the end.

    Args:
        exchange: A worker's: its controller has already resolved and checked the baseline.

    Raises:
        OpprofError: The store, or the baseline in it, cannot be read; or a name is invalid.
    """
    first = first_run(config)
    if first is not None:
        return Baseline(run=read_run(first))
    is_kept = options.save or options.baseline or options.json or options.history == "all"
    commit = Git(config.rootpath).head() if is_kept else None
    if exchange is not None:
        return Baseline(run=exchange.baseline(), commit=commit)
    if not (options.save or options.baseline):
        return Baseline(commit=commit)
    store = open_store(options.store, root=config.rootpath)
    if options.save:
        check_name(options.save, where="--opprof-save=")
    if not options.baseline:
        return Baseline(commit=commit)
    renames = parse_renames(options.renames, where="opprof_rename")
    try:
        found = resolve_baseline(
            store,
            options.baseline,
            repository=config.rootpath,
            now=datetime.now(UTC),
            here=Environment(fingerprint=environment.expected_fingerprint()),
        )
    except MissingBaselineError as error:
        return Baseline(problem=str(error), commit=commit)
    run, notes = with_new_names(found.run, renames)
    return Baseline(run=run, label=found.label, notes=(*found.notes, *notes), commit=commit)


def save_run(
    config: pytest.Config,
    options: Options,
    run: Run,
    *,
    certified: Certified,
    collected: Collected,
    folder: Path,
    gates_of: Callable[[TestResult], Gates],
    traces: SessionTraces,
) -> list[str]:
    """Keep a certified run, and drop the acceptances that it replaces.

    Args:
        certified: The run's tests, as fresh processes confirmed them.
        folder: The project's ``.opprof``.

    Returns:
        Sentences for the user: what was kept, where, and what was not.

    Raises:
        OpprofError: The store cannot be written; it is unchanged.
    """
    assert options.save is not None
    notes = [certified.note] if certified.note else []
    store = open_store(options.store, root=config.rootpath)
    saved = store.save(
        options.save, replace(run, tests=certified.tests, notes=tuple(notes)), collected=collected
    )
    if saved.place is not None:
        kept = sum(test.carried_from is None for test in saved.run.tests)
        notes.insert(0, f"saved {counted(kept, 'test')} as {saved.run.title}: {saved.place}")
        notes += filter(None, [varying_note(certified.tests, gates_of)])
        notes += _spent(folder, saved.run, is_committed=store.is_committed)
        notes += traces.keep(store, saved.run)
    return [*notes, *saved.notes]


def _spent(folder: Path, run: Run, *, is_committed: bool) -> Iterator[str]:
    """Drop the acceptances whose rises the new baseline has, and say so."""
    try:
        spent = prune(folder, run, is_committed=is_committed)
    except OpprofError as error:
        yield str(error)
        return
    if spent:
        many = counted(len(spent), "entry", "entries")
        paths = listed([f"{entry.path} of {entry.test}" for entry in spent], most=_MOST_SPENT)
        yield f"{run.title} includes what was accepted: removed {many} of accepted.json ({paths}); commit it"
