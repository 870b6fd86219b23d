"""The end of our session: join, compare, keep, and print."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from pytest_opprof.baselines.accepted import prune, with_acceptances
from pytest_opprof.baselines.archive import open_store
from pytest_opprof.compare.comparison import Comparison
from pytest_opprof.compare.gates import varying_note
from pytest_opprof.compare.last import keep_last
from pytest_opprof.compare.renamed_tests import parse_renames, with_new_names
from pytest_opprof.compare.sessions import compare_runs
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.errors import OpprofError
from pytest_opprof.history.store import history_of, remember
from pytest_opprof.plugin.benchmarks import machine_details
from pytest_opprof.plugin.certify import Certified, certify
from pytest_opprof.plugin.failing import fail_session, failures_of, listed_failures, name_causes
from pytest_opprof.plugin.fresh import first_run
from pytest_opprof.plugin.options import calls_no_test
from pytest_opprof.plugin.reports import write_report
from pytest_opprof.plugin.session import OpprofSession
from pytest_opprof.plugin.stash import FAILED, LOST, NOTES, WRITTEN
from pytest_opprof.release import version
from pytest_opprof.report.causes import ACCEPT
from pytest_opprof.report.summary import VERDICT_WORDS
from pytest_opprof.report.terminal import summary_lines
from pytest_opprof.report.text import Style, escaped
from pytest_opprof.results.files import write_run
from pytest_opprof.results.run import Environment, Outcome, Run
from pytest_opprof.results.shards import RANK
from pytest_opprof.wording import counted, listed

_CUT_SHORT: Final = frozenset({pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR})
_MOST_SPENT: Final = 3
_SENTENCE_END: Final = re.compile(r"\. (?=[A-Z])")  # a path may begin or end with a dot
_MOST_LOST: Final = 10
_UNREAD: Final = (
    "the result is lost. Does a fixture of a module or the session replace os.replace or the file system?"
)
_MARKUP: Final[Mapping[Style, dict[str, bool]]] = {
    Style.PLAIN: {},
    Style.BOLD: {"bold": True},
    Style.DIM: {"light": True},
    Style.GOOD: {"green": True},
    Style.WARN: {"yellow": True},
    Style.BAD: {"red": True, "bold": True},
}


def finish(session: OpprofSession, its: pytest.Session) -> None:
    """Compare and keep the measurements; fail the session for reasons without a test."""
    with contextlib.closing(session):
        _finish(session, its)


def _finish(session: OpprofSession, its: pytest.Session) -> None:
    config = session.config
    if calls_no_test(config) or its.exitstatus == pytest.ExitCode.USAGE_ERROR:
        return
    is_cut_short = session.abandon() or its.exitstatus in _CUT_SHORT
    if hasattr(config, "workeroutput"):
        session.hand_over()
        config.workeroutput |= {
            LOST: session.failures,
            WRITTEN: session.handed_over,
            NOTES: [*session.notes],
        }
        return
    measured_in = _join(session)
    session.details = {**machine_details(config), **session.details}
    run = session.run_of(session.results.values(), measured_in=measured_in)
    if first_run(config) is not None:
        # The process that started this one judges and keeps.
        _write_json(session, replace(run, tests=tuple(replace(test, tree=()) for test in run.tests)))
        return
    run = with_acceptances(run, session.policy.accepted)
    session.comparison = compare_runs(
        session.baseline.run,
        run,
        created=datetime.now(UTC),
        opprof_version=version(),
        policy=session.policy,
        collected=session.collected,
        judged=session.judged,
        notes=session.baseline.notes,
    )
    # The header has those of the baseline.
    session.notes |= dict.fromkeys(session.comparison.notes[len(session.baseline.notes) :])
    if session.comparison.base is not None:
        _keep_last(session, session.comparison)
    _write_json(session, run)
    _write_reports(session, session.comparison)
    is_saved = False
    if is_cut_short and session.options.save:
        session.notes["nothing was saved: the session was cut short"] = None
    elif session.options.save:
        is_saved = _save(session, run, session.comparison, its=its)
    _remember(session, run, is_saved=is_saved)
    session.failures += failures_of(session, session.comparison)
    name_causes(config.stash[FAILED], session.comparison)
    listed = list(listed_failures(session, session.comparison))
    if not fail_session(its, [*session.failures, *listed]):
        session.failures += listed  # else the last lines have them


def summarize(session: OpprofSession, reporter: pytest.TerminalReporter) -> None:
    """Print results of all marked tests."""
    if session.comparison is None:
        return
    verbosity = session.config.get_verbosity()
    accept = ACCEPT if session.comparison.base is not None else None
    lines = summary_lines(session.comparison, width=session.width, verbosity=verbosity, accept=accept)
    if verbosity < 0:
        for line in lines:
            reporter.write_line(f"opprof: {line.text}", **_MARKUP[line.style])
    else:
        reporter.section("opprof", sep="=")
        if verbosity > 0:
            _write_tables(session, reporter)
        for line in lines:
            reporter.write_line(line.text, **_MARKUP[line.style])
    for note in session.notes:
        reporter.write_line(f"opprof: {escaped(note)}")
    for failure in session.failures:
        reporter.write_line(f"opprof: {escaped(failure)}", red=True)
    if why := _why_red(session, session.comparison):
        reporter.write_line(f"opprof: {why}" if verbosity < 0 else why, red=True)
    for text in session.printed:
        # Readers depend on where a line begins.
        reporter.ensure_newline()
        reporter.write(text)


def _why_red(session: OpprofSession, comparison: Comparison) -> str:
    """``exit 1: 3 tests regressed``: why this session fails; empty if we do not fail it.

    An exit status that is not ours has another reason: ``exit 2, and 3 tests regressed``.
    """
    failing = Counter(test.verdict for test in comparison.tests if test.verdict and session.fails(test))
    told = [
        f"{counted(failing[verdict], 'test')} {VERDICT_WORDS.get(verdict, verdict.value)}"
        for verdict in Verdict
        if failing[verdict]
    ]
    if not told and session.failures:
        told = [_SENTENCE_END.split(session.failures[0])[0]]
    its: Any = session.config.pluginmanager.get_plugin("session")
    status = int(its.exitstatus)  # other plugins may have changed it
    means = ":" if status == pytest.ExitCode.TESTS_FAILED else ", and"
    return f"exit {status}{means} {escaped(', '.join(told))}" if told else ""


def _write_tables(session: OpprofSession, reporter: pytest.TerminalReporter) -> None:
    for test in session.results.values():
        if test.ops:
            reporter.write_line(escaped(test.node_id))
            reporter.write_line("\n".join(session.table_of(test)) + "\n")


def _join(session: OpprofSession) -> Environment | None:
    """Take over other processes' results; gives their environment, as far as known."""
    if session.is_controller:
        session.collected = session.shared.collected()
    found: Environment | None = None
    for run, test in session.shared.results():
        session.results[test.node_id] = test
        session.notes |= dict.fromkeys(run.notes)
        known = found.fingerprint if found else {}
        found = replace(run.environment, fingerprint={**known, **run.environment.fingerprint})
    lost = [node_id for node_id in session.handed_over if node_id not in session.results]
    if lost:
        session.failures.append(f"{listed(lost, most=_MOST_LOST)}: {_UNREAD}")
    return found


def _write_json(session: OpprofSession, run: Run) -> None:
    if session.options.json is None:
        return
    try:
        write_run(session.options.json, run)
    except OpprofError as error:
        session.failures.append(str(error))


def _write_reports(session: OpprofSession, comparison: Comparison) -> None:
    for wanted in session.options.reports:
        try:
            text = write_report(wanted, comparison, root=session.config.rootpath)
        except OpprofError as error:
            session.failures.append(str(error))
        else:
            session.printed += [text] if text is not None else []


def _keep_last(session: OpprofSession, comparison: Comparison) -> None:
    try:
        keep_last(session.folder, comparison)
    except OpprofError as error:
        if comparison.counts[Verdict.REGRESSED] or comparison.counts[Verdict.MISSING]:  # else not asked
            session.notes[f"`opprof accept` cannot use this comparison: {error}"] = None


def _remember(session: OpprofSession, run: Run, *, is_saved: bool) -> None:
    """Append a run to the store's history; in a distributed program only rank 0 does."""
    is_wanted = {"saved": is_saved, "all": True, "off": False}[session.options.history]
    if not is_wanted or run.environment.details.get(RANK, "0") != "0":
        return
    root = session.config.rootpath
    try:
        log = history_of(session.options.store, root=root)
        remember(log, replace(run, name=session.options.save if is_saved else None), repository=root)
    except OpprofError as error:
        session.failures.append(str(error))


def _save(session: OpprofSession, run: Run, comparison: Comparison, *, its: pytest.Session) -> bool:
    """Certify and keep a run without regressed tests, which are no example; says whether it was kept."""
    regressed = {
        test.node_id for test in comparison.tests if test.verdict is Verdict.REGRESSED and session.fails(test)
    }
    tests = tuple(
        replace(test, outcome=Outcome.FAILED) if test.node_id in regressed else test for test in run.tests
    )
    try:
        certified = certify(
            session.config, replace(run, tests=tests), processes=session.options.save_processes
        )
    except KeyboardInterrupt:
        # pytest catches none in this hook: its own results would be lost.
        session.notes["nothing was saved: the certification was interrupted"] = None
        its.exitstatus, its.shouldstop = pytest.ExitCode.INTERRUPTED, "opprof was interrupted"
        return False
    try:
        session.notes |= dict.fromkeys(_keep(session, run, certified))
    except OpprofError as error:
        session.failures.append(str(error))
        return False
    return True


def _keep(session: OpprofSession, run: Run, certified: Certified) -> list[str]:
    """Keep a run as `certified`, and drop the acceptances that it replaces; gives sentences for the user."""
    assert session.options.save is not None
    notes = [certified.note] if certified.note else []
    run = replace(run, tests=certified.tests, notes=tuple(notes))
    store = open_store(session.options.store, root=session.config.rootpath)
    renames = parse_renames(session.options.renames, where="opprof_rename")
    saved = store.save(
        session.options.save,
        run,
        collected=session.collected,
        renamed=lambda earlier: with_new_names(earlier, renames)[0],
    )
    if saved.place is not None:
        kept = sum(test.carried_from is None for test in saved.run.tests)
        notes.insert(0, f"saved {counted(kept, 'test')} as {saved.run.title}: {saved.place}")
        notes += filter(None, [varying_note(certified.tests, session.policy.gates_of)])
        notes += _spent(session, saved.run, is_committed=store.is_committed)
        notes += session.traces.keep(store, saved.run)
    return [*notes, *saved.notes]


def _spent(session: OpprofSession, run: Run, *, is_committed: bool) -> Iterator[str]:
    """Drop the acceptances whose rises the new baseline has, and say so."""
    try:
        spent = prune(session.folder, run, is_committed=is_committed)
    except OpprofError as error:
        yield str(error)
        return
    if spent:
        many = counted(len(spent), "entry", "entries")
        paths = listed([f"{entry.path} of {entry.test}" for entry in spent], most=_MOST_SPENT)
        yield f"{run.title} includes what was accepted: removed {many} of accepted.json ({paths}); commit it"
