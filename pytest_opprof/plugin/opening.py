"""The beginning of our session: requests are checked, and shown in the header."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Never

import pytest

from pytest_opprof.addresses import shown
from pytest_opprof.capture import environment
from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.cuda import CUDA, has_driver, open_cuda
from pytest_opprof.capture.instructions import installed_libraries
from pytest_opprof.capture.native import ABSENCE, Absence
from pytest_opprof.capture.observer_build import what_it_waits_for
from pytest_opprof.capture.replay import Replay
from pytest_opprof.capture.torch_ops import imported_torch
from pytest_opprof.compare.verdicts import parse_fail_on
from pytest_opprof.errors import OpprofError, UsageError
from pytest_opprof.plugin.benchmarks import is_measured_by_codspeed
from pytest_opprof.plugin.failing import GREEN
from pytest_opprof.plugin.flight import tell_of_deaths
from pytest_opprof.plugin.marking import mark, suite_arguments
from pytest_opprof.plugin.measurement import problem_sentence, problem_sentences
from pytest_opprof.plugin.options import Options, calls_no_test
from pytest_opprof.plugin.plans import PLAN, collected_by, known_ops, plan_of
from pytest_opprof.plugin.scaling import leave_limit_to_the_last
from pytest_opprof.plugin.session import OpprofSession
from pytest_opprof.plugin.stash import ARMING, ASIDE, OPTIONS, SESSION, UNMEASURED, XDIST
from pytest_opprof.plugin.workers import Exchange, exchange_of
from pytest_opprof.release import version
from pytest_opprof.report.terminal import header_lines
from pytest_opprof.results import files
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.names import MAX_TESTS, canonical_node_id
from pytest_opprof.wording import listed

_NOT_TIMED: Final = "no steps were timed: pytest-xdist runs other tests at the same time. Leave out -n"


def open_session(
    config: pytest.Config,
    *,
    marked: Collection[pytest.Item],
    chosen: Sequence[pytest.Item],
    notes: Collection[str],
) -> None:
    """Make this process's session; raises `pytest.UsageError` if a request is invalid, or cannot be read.

    `marked` are all collected marked tests, `chosen` those that will run, `notes` for the summary.
    """
    if is_measured_by_codspeed(config):
        _stand_aside(config)
        return
    _refuse_too_many(config, chosen)
    _plan(config, chosen)
    collected = collected_by(config, marked)
    if ABSENCE is not None:
        exchange = exchange_of(config)
        if exchange is not None:
            exchange.put_collected(collected)  # so that the controller says it too
        _leave_unmeasured(config, ABSENCE)
        return
    with _refusing(config):
        session = OpprofSession(
            config, config.stash[OPTIONS], collected=collected, exchange=exchange_of(config)
        )
        if session.exchange is not None:
            session.exchange.put_collected(session.collected)
            if session.options.timed_steps:
                session.notes[_NOT_TIMED] = None
    if chosen:
        _ask_before_tests(session.options)
    _note_what_is_missing(session, chosen)
    session.notes.update(dict.fromkeys(notes))
    config.stash[SESSION] = session


def _ask_before_tests(options: Options) -> None:
    """Learn now, and for good, what a test's mocks or a fake file system would answer wrongly."""
    environment.fingerprint()
    if options.instructions or Replay.here():
        installed_libraries()


def mark_tests(config: pytest.Config, items: Collection[pytest.Item]) -> list[str]:
    """Mark what the user chose; gives a sentence for each option that chooses nothing: its gate is idle."""
    with _refusing(config):
        idle = mark(items, config.stash[OPTIONS].marks)
    if config.getoption("opprof_tests", None):  # a fresh process collects a part
        return []
    return [
        f"--opprof-mark={line} matches no test here (paths start at {config.rootpath})"
        for line in config.getoption("opprof_mark") or ()
        if line in idle
    ]


def open_controller(config: pytest.Config, folder: Path) -> None:
    """Make the session of xdist's controller, before its workers start where something is to be prepared."""
    exchange = Exchange(folder=folder)
    if ABSENCE is not None:
        _leave_unmeasured(config, ABSENCE)
        return
    with _refusing(config):
        session = OpprofSession(
            config, config.stash[OPTIONS], collected=Collected(), exchange=exchange, is_controller=True
        )
        if session.baseline.run is not None:
            exchange.put_baseline(session.baseline.run)
    config.stash[SESSION] = session


def _stand_aside(config: pytest.Config) -> None:
    """Profile nothing: CodSpeed would measure that too. But refuse to skip a requested gate."""
    if config.stash[OPTIONS].asks_for_something:
        problem = (
            "opprof: CodSpeed measures this session, so opprof cannot profile, compare or save in it: "
            "pass --opprof=off here, without a baseline or a save, and run opprof in a separate session"
        )
        _refuse(config, [problem])
    config.stash[ASIDE] = "opprof: CodSpeed measures this session: marked tests are not profiled in it"


def _leave_unmeasured(config: pytest.Config, absence: Absence) -> None:
    """Profile nothing, because nothing can be. A broken installation must not skip a gate."""
    if absence.is_fault and config.stash[OPTIONS].asks_for_something:
        _refuse(config, [f"opprof: {absence}"])
    config.stash[ASIDE] = f"opprof: {absence}"
    _leave_undone(config, reason=absence.reason)


def leave_off(config: pytest.Config) -> None:
    """Say what the command line requested in vain, because opprof is off."""
    _leave_undone(config, reason="opprof is off (--opprof=off, or opprof = off in the ini file)")


def _leave_undone(config: pytest.Config, *, reason: str) -> None:
    """Note the summary's sentence on all that was requested and is not done."""
    if not calls_no_test(config):
        with _refusing(config):
            undone = [*_undone(config.stash[OPTIONS])]
        config.stash[UNMEASURED] = "; ".join([f"opprof: not measured: {reason}", *undone])


def fail_unmeasured(session: pytest.Session) -> None:
    """Fail a session that passed, if ``--opprof-fail-on`` says so."""
    if parse_fail_on(session.config.stash[OPTIONS].fail_on).unmeasured and session.exitstatus in GREEN:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _undone(options: Options) -> Iterator[str]:
    if options.baseline:
        yield f"nothing was compared with {options.baseline}"
    if options.save:
        yield f"nothing was saved as {options.save}"
    for path in filter(None, (options.json, *(report.path for report in options.reports))):
        yield f"{files.shown(path)} was not written"
    if parse_fail_on(options.fail_on).unmeasured:
        yield "--opprof-fail-on makes this fail"


def _refuse_too_many(config: pytest.Config, chosen: Sequence[pytest.Item]) -> None:
    """End a session of more tests than can be kept now, not after hours."""
    options = config.stash[OPTIONS]
    tests = len({canonical_node_id(item.nodeid) for item in chosen}) if len(chosen) > MAX_TESTS else 0
    if tests > MAX_TESTS and (options.json or options.save) and not calls_no_test(config):
        _refuse(
            config, [f"opprof: a run has at most {MAX_TESTS} marked tests, not {tests}. {files.IN_PARTS}"]
        )


def _plan(config: pytest.Config, chosen: Iterable[pytest.Item]) -> None:
    names, options = known_ops(), config.stash[OPTIONS]
    problems = []
    with _refusing(config):
        suite = suite_arguments(options.profile, options.limits, known_ops=names)
    for item in chosen:
        try:
            item.stash[PLAN] = plan_of(item, known_ops=names, suite=suite)
        except UsageError as error:
            problems.append(f"opprof: {error}")
    if problems:
        _refuse(config, problems)


def plan_growth(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Choose which size is judged, once the order of the tests is final."""
    with _refusing(config):
        leave_limit_to_the_last([item for item in items if PLAN in item.stash])


@contextlib.contextmanager
def _refusing(config: pytest.Config) -> Iterator[None]:
    """End the session if a request is invalid, or cannot be read."""
    try:
        yield
    except OpprofError as error:
        _refuse(config, [f"opprof: {error}"], error)


def _refuse(config: pytest.Config, problems: list[str], cause: Exception | None = None) -> Never:
    """End the session. A worker's error would be lost, so its controller prints it."""
    if hasattr(config, "workeroutput"):
        config.workeroutput[XDIST] = problems
    raise pytest.UsageError(*problems) from cause


def _note_what_is_missing(session: OpprofSession, chosen: Iterable[pytest.Item]) -> None:
    tests: dict[str, list[str]] = {}
    for item in chosen:
        for what in item.stash[PLAN].request.missing:
            tests.setdefault(what, []).append(item.name)
    for what, names in tests.items():
        who = listed(names, most=1)
        session.notes[f"{what}: not supported, so it was not recorded (asked for by {who})"] = None
    if any("cuda" in item.stash[PLAN].request.activities for item in chosen) and not has_driver():
        session.notes[problem_sentence(CUDA, open_cuda().reason)] = None


def header(config: pytest.Config) -> list[str]:
    """The lines on captured sources and the baseline; with ``-q`` only problems."""
    if ASIDE in config.stash:
        return [config.stash[ASIDE]]
    if calls_no_test(config):
        return []
    session = config.stash[SESSION]
    options, baseline = session.options, session.baseline
    problems = [] if session.is_controller else _problems(session)
    problems += tell_of_deaths(session.config.rootpath)
    first, *others = header_lines(
        version=version(),
        capturing=_capturing(options.capture),
        baseline=baseline.label or None,
        store=shown(options.store) if options.save or options.baseline else None,
        missing=[*problems, *baseline.notes, *filter(None, [baseline.problem])],
    )
    return others if session.config.get_verbosity() < 0 else [first, *others]


def _problems(session: OpprofSession) -> list[str]:
    """Prepare the collector before the first test; gives sentences on what cannot be captured."""
    collector = Collector.instance()
    _say_what_it_waits_for(session)
    try:
        collector.open(sources=session.options.capture)
    except OpprofError as error:
        return [str(error)]
    late = session.config.stash.get(ARMING, [])
    no_recovery = None if collector.session_path else "no writable session folder: no crash recovery"
    problems = problem_sentences(collector.problems)
    session.said.update(problems)
    return [*problems, *late, *filter(None, [no_recovery])]


def _say_what_it_waits_for(session: OpprofSession) -> None:
    """Announce the first compilation against a torch: it takes longer than most sessions."""
    torch = imported_torch()
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if torch is None or reporter is None or "ops" not in session.options.capture:
        return
    with contextlib.suppress(OpprofError):  # the collector reports it later
        waiting = what_it_waits_for(torch)
        if waiting:
            reporter.write_line(waiting)


def _capturing(sources: frozenset[str]) -> str:
    torch = imported_torch()
    words = {
        "ops": f"torch {torch.__version__} ops" if torch else "torch ops",
        "ops-itt": "torch ops through ITT (names only)",
        "ranges": "ranges",
        "itt": "ITT tasks",
        "nvtx": "NVTX ranges",
        "python": "Python calls",
        "cpp": "C++ stacks",
        "memory-python": "memory of Python's allocators",
        "memory-malloc": "memory of malloc",
        "cuda": "CUDA",
    }
    return ", ".join(text for source, text in words.items() if source in sources)
