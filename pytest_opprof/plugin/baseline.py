"""The baseline of a session."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from pytest_opprof.baselines.archive import open_store
from pytest_opprof.baselines.git import Git
from pytest_opprof.baselines.keys import check_name
from pytest_opprof.baselines.resolve import resolve_baseline
from pytest_opprof.capture import environment
from pytest_opprof.compare.renamed_tests import parse_renames, with_new_names
from pytest_opprof.errors import MissingBaselineError
from pytest_opprof.plugin.fresh import first_run
from pytest_opprof.plugin.options import Options
from pytest_opprof.plugin.workers import Exchange
from pytest_opprof.results.files import read_run
from pytest_opprof.results.run import Commit, Environment, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What tests are compared with."""

    run: Run | None = None  # the stored run; None if none was requested, or none exists
    label: str = ""  # its words in the header; "" without one
    notes: tuple[str, ...] = ()  # sentences on how it was found
    problem: str | None = None  # why a requested baseline does not exist; None otherwise
    commit: Commit | None = None  # the measured commit; None outside a repository, or if it is not needed


def find_baseline(config: pytest.Config, options: Options, *, exchange: Exchange | None) -> Baseline:
    """Resolve what the user named, and refuse now what could not be saved at the end; raises `OpprofError`.

    A worker has an `exchange`: its controller has already resolved and checked the baseline.
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
