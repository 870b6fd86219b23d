"""Our side of one pytest session: what is measured, what it is held to, and what came of it."""

from __future__ import annotations

import importlib.metadata
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from pytest_opprof.capture import environment
from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.torch_ops import imported_torch
from pytest_opprof.compare.comparison import Comparison, TestComparison
from pytest_opprof.compare.gates import parse_gate_options
from pytest_opprof.compare.sessions import Policy, compare_runs, compare_test
from pytest_opprof.compare.verdicts import Verdict, parse_fail_on
from pytest_opprof.errors import OpprofError, UsageError
from pytest_opprof.plugin.baseline import Baseline, find_baseline, save_run
from pytest_opprof.plugin.hooks import ARMING, OPTIONS, SESSION
from pytest_opprof.plugin.measurement import measurement_of
from pytest_opprof.plugin.options import Options
from pytest_opprof.plugin.plans import TestPlan, collected_by, known_ops, plan_of
from pytest_opprof.plugin.stepping import Stepping
from pytest_opprof.plugin.traces import write_traces
from pytest_opprof.plugin.workers import Exchange, exchange_of
from pytest_opprof.report.op_table import op_table
from pytest_opprof.report.section import failure_section
from pytest_opprof.report.terminal import header_lines, summary_lines
from pytest_opprof.report.text import Style
from pytest_opprof.results.files import write_run
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.names import canonical_node_id
from pytest_opprof.results.run import Environment, Outcome, Run, TestResult

PLAN: Final = pytest.StashKey[TestPlan]()
STEPPING: Final = pytest.StashKey[Stepping]()
# No fault of the test's: they fail the session at its end, never a test.
_NOT_THE_TESTS: Final = frozenset({Verdict.ERROR, Verdict.MISSING})
_DEFAULT_TRACES: Final = Path(".opprof") / "traces"
_MARKUP: Final[Mapping[Style, dict[str, bool]]] = {
    Style.PLAIN: {},
    Style.BOLD: {"bold": True},
    Style.DIM: {"light": True},
    Style.GOOD: {"green": True},
    Style.WARN: {"yellow": True},
    Style.BAD: {"red": True, "bold": True},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """A test that was judged, and whether that failed it."""

    comparison: TestComparison
    failed: bool


class OpprofSession:
    """One pytest session with marked tests, in a process that runs them or in xdist's controller.

    Attributes:
        options: What the user asked for.
        exchange: The folder shared with other processes; None where the tests run in this one.
        is_controller: The tests run in workers, and this process joins what they found.
        collected: What was collected.
        node_ids: From a result's node id to pytest's own.
    """

    def __init__(
        self,
        config: pytest.Config,
        options: Options,
        *,
        collected: Collected,
        exchange: Exchange | None = None,
        is_controller: bool = False,
    ) -> None:
        """Find the baseline, and check what was asked for.

        Raises:
            OpprofError: It cannot be meant, or the store or the baseline cannot be read.
        """
        self.options = options
        self.exchange = exchange
        self.is_controller = is_controller
        self.collected = collected
        self.node_ids: dict[str, str] = {}
        self._config = config
        self._fail_on = parse_fail_on(options.fail_on)
        self._table(TestResult(node_id=""))  # a sort key or column that does not exist is told now
        self._policy = Policy(command_line=parse_gate_options(options.gates))
        self._baseline = find_baseline(config, options, exchange=None if is_controller else exchange)
        self._results: dict[str, TestResult] = {}
        self._judged: dict[str, _Judged] = {}
        self._notes: list[str] = []
        self._failures: list[str] = []
        self._comparison: Comparison | None = None
        self._run_id = secrets.token_hex(8)
        self._created = datetime.now(UTC)

    @property
    def baseline(self) -> Baseline:
        """What the tests are held to."""
        return self._baseline

    # ---- before the tests --------------------------------------------------------------------

    def header(self) -> list[str]:
        """The lines that say what is captured, and what it is held to."""
        if self._config.getoption("collectonly"):
            return []
        problems = [] if self.is_controller else self._prepared()
        return header_lines(
            version=_version(),
            capturing=self._capturing(),
            baseline=self._baseline.label or None,
            store=self.options.store if self.options.save or self.options.baseline else None,
            missing=[*problems, *self._baseline.notes, *filter(None, [self._baseline.problem])],
        )

    def _prepared(self) -> list[str]:
        """Have the collector ready before the first test; sentences on what cannot be captured here."""
        collector = Collector.instance()
        try:
            collector.open(sources=self.options.capture)
        except OpprofError as error:
            return [str(error)]
        late = self._config.stash.get(ARMING, None)
        no_recovery = None if collector.session_path else "no folder takes a session file: no crash recovery"
        return [*collector.problems.values(), *filter(None, [late, no_recovery])]

    def _capturing(self) -> str:
        torch = imported_torch()
        words = {
            "ops": f"torch {torch.__version__} ops" if torch else "torch ops",
            "ops-itt": "torch ops through ITT (names only)",
            "ranges": "ranges",
            "itt": "ITT tasks",
        }
        return ", ".join(text for source, text in words.items() if source in self.options.capture)

    # ---- a test ------------------------------------------------------------------------------

    def stepping_of(self, item: pytest.Item) -> Stepping | None:
        """A test's measurement; None for a test that is not measured."""
        plan = item.stash.get(PLAN, None)
        if plan is None:
            return None
        if STEPPING not in item.stash:
            stepping = item.stash[STEPPING] = Stepping(plan.request)
            stepping.prepare(self.options.capture)
        return item.stash[STEPPING]

    def judge(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Take a test's measurement, and fail the test where a gate failed."""
        plan = item.stash.get(PLAN, None)
        if plan is None:
            return
        stepping = item.stash.get(STEPPING, None)
        if stepping is not None:
            del item.stash[STEPPING]  # a rerun of the same item starts anew; the recordings are let go
        outcome = _outcome(report)
        node_id = canonical_node_id(item.nodeid)
        test = measurement_of(
            stepping, node_id=node_id, outcome=outcome, limits=plan.limits, gates=plan.gates
        )
        self.node_ids[node_id] = item.nodeid
        self._results[node_id] = test
        if self.exchange is not None:
            self.exchange.put_result(self._run([test]))
        if outcome is not Outcome.PASSED or stepping is None:
            return
        traces = self._write_traces(node_id, stepping, wanted=plan.request.trace)
        found = self._compare(test)
        fails = self._fail_on.fails(found.verdict) and found.verdict not in _NOT_THE_TESTS
        self._judged[node_id] = _Judged(comparison=found, failed=fails)
        if fails:
            width = self._config.get_terminal_writer().fullwidth
            lines = failure_section(
                found, baseline=self.options.baseline, width=width, traces=[str(path) for path in traces]
            )
            report.outcome = "failed"
            report.longrepr = "\n".join(lines)

    def _compare(self, test: TestResult) -> TestComparison:
        base = self._baseline.run
        before = base.test(test.node_id) if base else None
        return compare_test(test, before, base=base, head=self._run([test]), policy=self._policy)

    def _write_traces(self, node_id: str, stepping: Stepping, *, wanted: bool) -> list[Path]:
        folder = self.options.traces or (self._config.rootpath / _DEFAULT_TRACES if wanted else None)
        if folder is None or not stepping.recordings:
            return []
        try:
            return write_traces(folder, node_id, stepping.recordings)
        except OpprofError as error:
            self._notes.append(str(error))
            return []

    def _table(self, test: TestResult) -> list[str]:
        options = self.options
        return op_table(test, sort_by=options.sort, columns=options.columns, rows=options.rows)

    # ---- after the tests ---------------------------------------------------------------------

    def finish(self, session: pytest.Session) -> None:
        """Join, compare, save; and fail the session for what no test stands for."""
        if self.exchange is not None and not self.is_controller:
            self.exchange.put_collected(self.collected)
            return
        environment_run = self._joined() if self.is_controller else None
        run = self._run(tuple(self._results.values()), like=environment_run)
        self._comparison = compare_runs(
            self._baseline.run,
            run,
            created=datetime.now(UTC),
            opprof_version=_version(),
            policy=self._policy,
            collected=self.collected,
            notes=self._baseline.notes,
        )
        try:
            self._keep(run)
        except OpprofError as error:
            self._failures.append(str(error))
        self._failures += self._untested_failures(self._comparison)
        if self._failures and session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _joined(self) -> Run | None:
        """Take over what the workers left; a run of theirs, for its environment."""
        assert self.exchange is not None
        last: Run | None = None
        for run, test in self.exchange.results():
            last = run
            self._results[test.node_id] = test
            self.node_ids[test.node_id] = test.node_id
        self.collected = self.exchange.collected()
        return last

    def _keep(self, run: Run) -> None:
        if self.options.json is not None:
            write_run(self.options.json, run)
        if self.options.save is not None:
            saved = save_run(
                self._config, self.options, run, collected=self.collected, node_ids=self.node_ids
            )
            self._notes += saved

    def _untested_failures(self, comparison: Comparison) -> list[str]:
        """Sentences on what fails this session although no test failed for it."""
        failures = []
        if self._baseline.problem and self._fail_on.no_baseline:
            failures.append(self._baseline.problem)
        failures += [
            f"{test.node_id}: {test.reason}"
            for test in comparison.tests
            if test.verdict in _NOT_THE_TESTS and self._fail_on.fails(test.verdict) and self._asks(test)
        ]
        return failures

    def _asks(self, test: TestComparison) -> bool:
        """Whether somebody wanted a verdict: on everything, or on this test's limits."""
        wanted = self.options.baseline or self.options.save
        return bool(wanted or (test.head is not None and test.head.limits))

    def summarize(self, reporter: pytest.TerminalReporter) -> None:
        """Print what came of all marked tests."""
        if self._comparison is None:
            return
        verbosity = self._config.get_verbosity()
        width = self._config.get_terminal_writer().fullwidth
        reporter.section("opprof", sep="=")
        if verbosity > 0:
            for test in self._results.values():
                if test.ops:
                    reporter.write_line(test.node_id)
                    reporter.write_line("\n".join(self._table(test)) + "\n")
        for line in summary_lines(self._comparison, width=width, verbosity=verbosity):
            reporter.write_line(line.text, **_MARKUP[line.style])
        for note in self._notes:
            reporter.write_line(f"opprof: {note}")
        for failure in self._failures:
            reporter.write_line(f"opprof: {failure}", red=True)

    def _run(self, tests: Sequence[TestResult], *, like: Run | None = None) -> Run:
        here = (
            like.environment
            if like
            else Environment(fingerprint=environment.fingerprint(), details=environment.details())
        )
        return Run(
            run_id=self._run_id,
            created=self._created,
            opprof_version=_version(),
            name=self.options.save,
            commit=self._baseline.commit,
            environment=here,
            tests=tuple(tests),
        )


def _outcome(report: pytest.TestReport) -> Outcome:
    if report.when == "setup":
        return Outcome.SKIPPED if report.skipped else Outcome.ERROR
    if report.passed:
        return Outcome.PASSED
    return Outcome.SKIPPED if report.skipped else Outcome.FAILED


def _version() -> str:
    return importlib.metadata.version("pytest-opprof")


def open_session(config: pytest.Config, marked: Sequence[pytest.Item]) -> None:
    """Make this process's session, after collection and before other plugins select among the tests.

    Raises:
        pytest.UsageError: What was asked for cannot be meant, or cannot be read.
    """
    names = known_ops()
    problems = []
    for item in marked:
        try:
            plan = plan_of(item, known_ops=names)
        except UsageError as error:
            problems.append(str(error))
        else:
            if plan is not None:
                item.stash[PLAN] = plan
    if problems:
        raise pytest.UsageError(*problems)
    try:
        config.stash[SESSION] = OpprofSession(
            config,
            config.stash[OPTIONS],
            collected=collected_by(config, marked),
            exchange=exchange_of(config),
        )
    except OpprofError as error:
        raise pytest.UsageError(f"opprof: {error}") from error


def open_controller(config: pytest.Config, exchange: Exchange) -> str | None:
    """Make the session of xdist's controller, before its workers start.

    Returns:
        The digest of the baseline that the workers judge by; None where there is none.

    Raises:
        pytest.UsageError: What was asked for cannot be meant, or cannot be read.
    """
    options = config.stash[OPTIONS]
    if options.mode == "off":
        return None
    try:
        session = OpprofSession(config, options, collected=Collected(), exchange=exchange, is_controller=True)
        config.stash[SESSION] = session
        base = session.baseline.run
        return exchange.put_baseline(base) if base is not None else None
    except OpprofError as error:
        raise pytest.UsageError(f"opprof: {error}") from error
