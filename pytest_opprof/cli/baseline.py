"""``opprof baseline``: list, show, save, copy and remove the runs of a store."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_opprof.baselines.keys import KEPT_RUNS
from pytest_opprof.cli.actions import add_action
from pytest_opprof.cli.output import print_lines, width
from pytest_opprof.cli.project import Project, add_store, history_log, store_of
from pytest_opprof.errors import UsageError
from pytest_opprof.report.text import escaped

if TYPE_CHECKING:
    from pytest_opprof.baselines.archive import Archive
    from pytest_opprof.results.merge import Collected
    from pytest_opprof.results.run import Run

HELP = "list, show, keep, move and remove stored runs"
EXAMPLE = "opprof baseline list"

_NAMES = "baselines (default: all)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    from pytest_opprof.cli.show import add_table_arguments

    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", title="actions")
    action = add_action(
        actions, "list", _list, "list a store's baselines, or the runs of one baseline", "main"
    )
    action.add_argument("name", nargs="?", metavar="NAME", help="list the runs of this baseline")
    action.add_argument("--json", action="store_true", help="print JSON")
    action = add_action(actions, "show", _show, "print the op tables of a run", "main@1a2b3c4 --rows 20")
    action.add_argument("run", metavar="NAME[@COMMIT[_FAMILY]]", help="the newest run, or that of a commit")
    add_table_arguments(action)
    action = add_action(
        actions, "save", _save, "store a run's file (of --opprof-json) as a baseline", "main run.json"
    )
    action.add_argument("name", metavar="NAME", help="the baseline")
    action.add_argument("run", type=Path, metavar="RUN", help="the run's file")
    action.add_argument("--whole", action="store_true", help="drop baseline tests that RUN does not have")
    action = add_action(
        actions, "remove", _remove, "remove a baseline, or its runs of one commit", "main@1a2b3c4"
    )
    action.add_argument("run", metavar="NAME[@COMMIT[_FAMILY]]", help="what to remove")
    what = "remove old runs, and runs of commits that no longer exist"
    action = add_action(actions, "prune", _prune, what, "--keep 50 main")
    action.add_argument("names", nargs="*", metavar="NAME", help=_NAMES)
    action.add_argument(
        "--keep",
        type=int,
        default=KEPT_RUNS,
        metavar="N",
        help="runs of each that stay, default: %(default)s",
    )
    for name, act, word, what in (
        ("push", _push, "--to", "copy runs to another store"),
        ("pull", _pull, "--from", "copy runs from another store"),
    ):
        action = add_action(actions, name, act, what, f"main {word} s3://bucket/opprof")
        action.add_argument("names", nargs="*", metavar="NAME", help=_NAMES)
        ends = action.add_mutually_exclusive_group()
        ends.add_argument(word, dest="other", metavar="URI", help="the other store")
        ends.add_argument(
            "--remote",
            default="origin",
            metavar="REMOTE",
            help="for a git: store, the git remote; default: %(default)s",
        )
    for action in actions.choices.values():
        add_store(action)


def run(args: argparse.Namespace) -> int:
    """Run the chosen action."""
    args.act(store_of(args.store), args)
    return 0


def _list(archive: Archive, args: argparse.Namespace) -> None:
    from pytest_opprof.baselines.resolve import find_entries
    from pytest_opprof.baselines.summary import (
        entry_to_document,
        summaries,
        summary_to_document,
    )
    from pytest_opprof.report.baselines import baseline_lines, entry_lines

    now = datetime.now(UTC)
    if args.name is not None:
        entries = find_entries(args.name, store=archive)
        if args.json:
            print(json.dumps([entry_to_document(entry) for entry in entries], indent=2))
        else:
            print_lines(entry_lines(entries, now=now, width=width()))
        return
    found = list(summaries(archive))
    if args.json:
        print(json.dumps([summary_to_document(one) for one in found], indent=2))
    else:
        print_lines(baseline_lines(found, uri=archive.uri, now=now, width=width()))


def _show(archive: Archive, args: argparse.Namespace) -> None:
    from pytest_opprof.baselines.resolve import find_entry
    from pytest_opprof.cli.show import run_lines

    print_lines(run_lines(archive.load(find_entry(args.run, store=archive)), args))


def _save(archive: Archive, args: argparse.Namespace) -> None:
    from pytest_opprof.compare.renamed_tests import with_new_names
    from pytest_opprof.history.store import remember
    from pytest_opprof.results.files import read_run
    from pytest_opprof.results.merge import Collected

    run, here, renames = read_run(args.run), Path.cwd(), Project.here().renames([])
    collected = _all_of(run, where=args.run) if args.whole else Collected()
    saved = archive.save(
        args.name, run, collected=collected, renamed=lambda earlier: with_new_names(earlier, renames)[0]
    )
    if saved.place is not None:
        print(f"saved {saved.run.title}: {saved.place}")
        remember(history_log(args.store), replace(run, name=args.name), repository=here)
    print_lines(map(escaped, saved.notes))


def _all_of(run: Run, *, where: Path) -> Collected:
    """What a session of all tests would have collected to produce this run."""
    from pytest_opprof.results.merge import Collected
    from pytest_opprof.results.shards import gaps_of

    # A missing shard's tests would count as deleted, and pass as NEW the next time.
    if gaps := gaps_of(run):
        raise UsageError(f"{where} is not a run of all tests: it lacks {gaps[0]}. Save it without --whole")
    return Collected(node_ids=frozenset(test.node_id for test in run.tests), whole_paths=frozenset({"."}))


def _remove(archive: Archive, args: argparse.Namespace) -> None:
    from pytest_opprof.baselines.resolve import find_entries

    entries = find_entries(args.run, store=archive)
    keys = {entry.key for entry in entries}
    gone = archive.remove(archive.name_of(entries[0].name), is_meant=lambda entry: entry.key in keys)
    print_lines(escaped(f"removed {entry.place}") for entry in gone)


def _prune(archive: Archive, args: argparse.Namespace) -> None:
    from pytest_opprof.baselines.git import CommitsAtHand
    from pytest_opprof.baselines.resolve import known_names

    if args.keep < 1:
        raise UsageError(f"--keep={args.keep}: keep at least 1; `opprof baseline remove` removes all")
    history = CommitsAtHand(Path.cwd())
    if history.problem:
        print(f"kept runs whose commits may be gone: {history.problem}")
    for name in known_names(args.names, store=archive):
        gone = archive.prune(name, keep=args.keep, is_gone=history.lacks)
        print_lines(escaped(f"removed {entry.place}") for entry in gone)


def _push(archive: Archive, args: argparse.Namespace) -> None:
    from pytest_opprof.baselines.git_remote import push_refs
    from pytest_opprof.baselines.resolve import known_names

    names = known_names(args.names, store=archive)
    if args.other is not None:
        notes = store_of(args.other).take(archive, names)
    else:
        notes = push_refs(archive, names, remote=args.remote)
    print_lines(map(escaped, notes))


def _pull(archive: Archive, args: argparse.Namespace) -> None:
    from pytest_opprof.baselines.git_remote import pull_refs
    from pytest_opprof.baselines.resolve import known_names

    if args.other is not None:
        other = store_of(args.other)
        notes = archive.take(other, known_names(args.names, store=other))
    else:
        notes = pull_refs(archive, args.names, remote=args.remote)
    print_lines(map(escaped, notes))
