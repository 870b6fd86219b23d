"""A command's comparison: read from a file, or made from runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_opprof.cli.project import Project, store_of
from pytest_opprof.errors import UsageError
from pytest_opprof.release import version

if TYPE_CHECKING:
    import argparse

    from pytest_opprof.baselines.edited_file import EditedFile
    from pytest_opprof.compare.comparison import Comparison
    from pytest_opprof.report.summary import Judged
    from pytest_opprof.results.run import Run


def comparison_of(args: argparse.Namespace) -> Judged:
    """Read the comparison that a command was given, or compare its runs; UsageError for both or neither."""
    from pytest_opprof.compare.timing.document import read_judged

    if (args.comparison is None) == (args.head is None) or (args.base and not args.head):
        raise UsageError(
            f"opprof {args.command} takes one of these: COMPARISON, --head, or --base and --head"
        )
    if args.comparison is None:
        return compare_now(args.base, args.head, store=args.store, gates=args.gate, renames=[])
    if args.gate:
        raise UsageError("--gate has no effect on a finished comparison: compare its runs again")
    return read_judged(args.comparison)


def compare_now(
    base: str | None, head: str, *, store: str | None, gates: list[str], renames: list[str]
) -> Comparison:
    """Compare two runs by the configuration of the project around the current folder.

    A run is a file, a baseline's name or ``name@commit``; without a base, only limits are checked.
    """
    from pytest_opprof.baselines.resolve import find_run

    return compare_run(base, find_run(head, store=store_of(store)), store=store, gates=gates, renames=renames)


def compare_run(
    base: str | None, after: Run, *, store: str | None, gates: list[str], renames: list[str]
) -> Comparison:
    """Like `compare_now`, for a loaded head."""
    from pytest_opprof.baselines.resolve import find_base
    from pytest_opprof.compare.renamed_tests import with_new_names
    from pytest_opprof.compare.sessions import compare_runs

    project = Project.here()
    policy, renamed = project.policy(gates), project.renames(renames)
    now = datetime.now(UTC)
    before: Run | None = None
    notes: tuple[str, ...] = ()
    if base:
        found, about = find_base(base, after, store=store_of(store), repository=Path.cwd(), now=now)
        before, told = with_new_names(found, renamed)
        notes = (*about, *told)
    return compare_runs(
        before,
        after,
        created=now,
        opprof_version=version(),
        policy=replace(policy, edits=_edits_of(after)),
        notes=notes,
    )


def _edits_of(head: Run) -> Callable[[str], Mapping[str, EditedFile]]:
    """What was edited since a commit; nothing if the work tree is not that of the head's commit."""
    from pytest_opprof.baselines.edits import edits_since
    from pytest_opprof.baselines.git import Git

    @cache
    def edits(commit: str) -> Mapping[str, EditedFile]:
        here, measured = Git(Path.cwd()).head(), head.commit
        is_here = here and measured and (here.id, here.dirty) == (measured.id, measured.dirty)
        return edits_since(Path.cwd(), commit) if is_here else {}

    return edits
