"""The comparison that a command is about: a document of one, or two runs that are compared now."""

from __future__ import annotations

import importlib.metadata
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_opprof.cli.project import Project, store_of
from pytest_opprof.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from pytest_opprof.report.summary import Judged
    from pytest_opprof.results.run import Run


def comparison_of(args: argparse.Namespace) -> Judged:
    """The comparison that a command was given as a document, or that it makes of two runs.

    Args:
        args: with ``comparison``, ``base``, ``head``, ``gate`` and ``store``.

    Raises:
        UsageError: it was given neither, or both.
        OpprofError: a document or a run cannot be found or read.
    """
    from pytest_opprof.compare.time_document import read_judged  # noqa: PLC0415

    if (args.comparison is None) == (args.head is None) or (args.base and not args.head):
        raise UsageError(
            f"opprof {args.command} takes one of these: COMPARISON, --head, or --base and --head"
        )
    if args.comparison is None:
        return _compared(args)
    if args.gate:
        raise UsageError("--gate has no effect on a comparison that was made already: compare its runs anew")
    return read_judged(args.comparison)


def _compared(args: argparse.Namespace) -> Judged:
    from pytest_opprof.baselines.resolve import find_base, find_run  # noqa: PLC0415
    from pytest_opprof.compare.renamed_tests import with_new_names  # noqa: PLC0415
    from pytest_opprof.compare.sessions import compare_runs  # noqa: PLC0415

    project, store = Project.here(), store_of(args.store)
    now = datetime.now(UTC)
    head = find_run(args.head, store=store)
    base: Run | None = None
    notes: tuple[str, ...] = ()
    if args.base:
        found, about = find_base(args.base, head, store=store, repository=Path.cwd(), now=now)
        base, renamed = with_new_names(found, project.renames([]))
        notes = (*about, *renamed)
    return compare_runs(
        base,
        head,
        created=now,
        opprof_version=importlib.metadata.version("pytest-opprof"),
        policy=project.policy(args.gate),
        notes=notes,
    )
