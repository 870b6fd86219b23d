"""Our side of one pytest session: measurements, the baseline, and the results."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_opprof.baselines.accepted import Acceptance, Key, read_accepted
from pytest_opprof.baselines.edits import edits_since
from pytest_opprof.baselines.folder import FOLDER
from pytest_opprof.capture import environment
from pytest_opprof.capture.call_sites import SITES
from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.cuda import CUDA
from pytest_opprof.capture.folders import start_folder, start_in
from pytest_opprof.capture.replay import Replay
from pytest_opprof.capture.speed import Speed
from pytest_opprof.capture.torch_ops import WORK
from pytest_opprof.compare.comparison import Comparison, TestComparison
from pytest_opprof.compare.gates import parse_gate_options
from pytest_opprof.compare.sessions import Policy, compare_test
from pytest_opprof.compare.verdicts import parse_fail_on
from pytest_opprof.errors import OpprofError
from pytest_opprof.plugin.baseline import Baseline, find_baseline
from pytest_opprof.plugin.benchmark_stepping import BenchmarkStepping, Common
from pytest_opprof.plugin.benchmarks import benchmark_of, leave_summary
from pytest_opprof.plugin.counting import MACHINE, PYTHON, CountedCalls, certified_counts
from pytest_opprof.plugin.failing import NOT_THE_TESTS, fail_test
from pytest_opprof.plugin.fresh import first_run
from pytest_opprof.plugin.heap import RestingHeap
from pytest_opprof.plugin.looks import Looks, measured_of, measured_or_error, outcome_of, unjudged
from pytest_opprof.plugin.marker import ProfileRequest
from pytest_opprof.plugin.measurement import (
    problem_sentence,
    problem_sentences,
    unmeasured,
    with_instructions,
)
from pytest_opprof.plugin.options import ALWAYS, Options
from pytest_opprof.plugin.plans import PLAN, known_ops
from pytest_opprof.plugin.reports import check_reports, note_properties
from pytest_opprof.plugin.scaling import Scaling, limits_growth
from pytest_opprof.plugin.seeds import Seeds
from pytest_opprof.plugin.shortfall import FAULTS, fault
from pytest_opprof.plugin.stepping import Stepping
from pytest_opprof.plugin.timing import QuietMachine, TimedSteps
from pytest_opprof.plugin.traces import SessionTraces
from pytest_opprof.plugin.workers import Exchange
from pytest_opprof.release import version
from pytest_opprof.report.causes import ACCEPT, showing, test_acceptance
from pytest_opprof.report.op_table import op_table
from pytest_opprof.report.section import failure_section
from pytest_opprof.results.files import shown
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.names import canonical_node_id
from pytest_opprof.results.run import CERTIFICATE, Environment, MeasurementStatus, Outcome, Run, TestResult
from pytest_opprof.units import NS_IN_S

STEPPING: Final = pytest.StashKey[Stepping]()
_WIDTH: Final = 80  # without a terminal


class OpprofSession:
    """One pytest session with marked tests, in a process that runs them or in xdist's controller."""

    def __init__(
        self,
        config: pytest.Config,
        options: Options,
        *,
        collected: Collected,
        exchange: Exchange | None = None,
        is_controller: bool = False,
    ) -> None:
        """Find the baseline, and check the options; raises `OpprofError`."""
        self._outer_start = start_in()
        self.config = config
        self.options = options
        self.exchange = exchange  # the folder shared with xdist's other processes; None without workers
        self.is_controller = is_controller  # it joins the results of the workers that run the tests
        self.collected = collected
        self.results: dict[str, TestResult] = {}  # by node id, in the order in which the tests ended
        self.judged: dict[str, TestComparison] = {}  # made in the process that ran the tests
        self.running: TestResult | None = None  # the running test
        self.handed_over: list[str] = []  # tests whose results this process, or a worker, wrote
        self._untold: dict[str, TestResult] = {}  # results that are still to be handed over
        self.notes: dict[str, None] = {}  # sentences for the user, each once
        self.said: set[str] = set()  # sentences in the header
        self.failures: list[str] = []  # reasons that fail this session without a failed test
        self.comparison: Comparison | None = None  # of all tests, when the session is over
        self.printed: list[str] = []  # reports printed with the summary
        self.seeds = Seeds(options.seed)
        self.fail_on = parse_fail_on(options.fail_on)
        self.table_of(TestResult(node_id=""))  # refuse unknown sort keys and columns now
        check_reports(options.reports)
        names = known_ops()
        self.policy = Policy(
            ini=parse_gate_options(options.ini_gates, where="opprof_gate", known_ops=names),
            command_line=parse_gate_options(options.gates, known_ops=names),
            accepted=self._accepted(),
            edits=cache(partial(edits_since, start_folder())),
        )
        self.baseline: Baseline = find_baseline(config, options, exchange=None if is_controller else exchange)
        base = self.baseline.run
        # The baseline's tests, by node id.
        self.before = {} if base is None else {test.node_id: test for test in base.tests}
        self._looks = Looks(self)
        self._scaling = Scaling()
        self._heap = RestingHeap()
        self._speed: Speed | None = None
        self.details = environment.details()
        self._version = version()
        self._run_id = secrets.token_hex(8)
        self._created = datetime.now(UTC)
        # A folder for forked children that run a test, if there are no workers.
        self.shared = exchange or Exchange.of_this_process()
        self.traces = SessionTraces(root=config.rootpath, options=options, exchange=self.shared)

    def close(self) -> None:
        """Remove what was not kept; a worker's folder is left to its controller."""
        self._heap.thaw()
        start_in(self._outer_start)
        if self.shared.is_of_this_process:
            self.shared.remove()

    def _accepted(self) -> Mapping[Key, Acceptance]:
        """This project's acceptances; a damaged list is an error only if it decides something."""
        options = self.options
        if not (options.baseline or options.save or options.json):
            return {}
        try:
            return read_accepted(self.folder)
        except OpprofError as error:
            if options.baseline:
                raise
            self.notes[str(error)] = None
            return {}

    # ---- a test ------------------------------------------------------------------------------

    def watches(self, item: pytest.Item) -> bool:
        """Whether a test's recording survives its process."""
        return PLAN in item.stash or self.options.mode == ALWAYS

    def prepare(self, item: pytest.Item) -> None:
        """A test will be set up: freeze the heap, so that its windows do not pay for it."""
        self.seeds.begin(is_measured=PLAN in item.stash)
        if PLAN in item.stash:
            self._heap.freeze()
        else:
            self._heap.thaw()

    def stepping_of(self, item: pytest.Item) -> Stepping | None:
        """A test's measurement; None if it is not measured."""
        plan = item.stash.get(PLAN, None)
        if plan is None or plan.refusal:
            return None
        if STEPPING not in item.stash:
            item.stash[STEPPING] = self._new_stepping(item, plan.request)
            self.running = unjudged(item, Outcome.ERROR)
        return item.stash[STEPPING]

    def _new_stepping(self, item: pytest.Item, request: ProfileRequest) -> Stepping:
        fixture = benchmark_of(item)
        common: Common = {
            "sources": self._sources,
            "fails": partial(self._looks.would_fail, item),
            "timed": TimedSteps(0 if self.exchange else self.options.timed_steps, quiet=self._quiet()),
            "quiet": self._quiet(),
            "seeds": self.seeds,
        }
        if fixture is not None:
            return BenchmarkStepping(request, fixture=fixture, **common)
        return Stepping(
            request,
            looks=self._looks.before_all(item, request),
            answers=partial(self._looks.is_as_before, item),
            counted=self._counted_calls(item),
            keep_events=self.traces.kept_events(request),
            **common,
        )

    def _counted_calls(self, item: pytest.Item) -> list[CountedCalls]:
        if "cpu" not in item.stash[PLAN].request.activities:
            return []
        before = self.before.get(canonical_node_id(item.nodeid))
        least = 1 if first_run(self.config) is not None else CERTIFICATE
        is_certified = before is not None and before.processes >= least
        return [
            CountedCalls(kind, expected=certified_counts(before, kind) if before and is_certified else None)
            for kind in (PYTHON, MACHINE)
            if (self.options.instructions if kind is PYTHON else Replay.here())
        ]

    @property
    def _sources(self) -> frozenset[str]:
        options = self.options
        notes_sites = options.call_sites or first_run(self.config) is not None
        work = {WORK} if "ops" in options.capture else set[str]()
        return options.capture | work | ({SITES} if notes_sites else set[str]())

    def _quiet(self) -> QuietMachine | None:
        """Waits for undisturbed moments, if times are requested."""
        options = self.options
        if self.exchange or not (options.timed_steps and options.timed_max_time):
            return None
        self._speed = self._speed or Speed.of_process()
        return QuietMachine(self._speed, budget_ns=round(options.timed_max_time * NS_IN_S))

    def judge(self, item: pytest.Item, call: pytest.CallInfo[Any], report: pytest.TestReport) -> None:
        """Take a test's measurement, and fail the test if a gate failed."""
        stepping = item.stash.get(STEPPING, None)
        if stepping is not None and stepping.is_running:
            stepping.note_part(report)
        elif PLAN in item.stash:
            failure = self._ended(item, outcome_of(report))
            if failure:
                fail_test(call, report, failure)

    def torn_down(self, item: pytest.Item) -> None:
        """Take a measurement without a report: a plugin called the test again. Hand results over."""
        stepping = item.stash.get(STEPPING, None)
        if stepping is not None:
            self._ended(item, stepping.outcome)
        self.hand_over()

    def _ended(self, item: pytest.Item, outcome: Outcome) -> str:
        """Take the measurement of a test that ended so; gives the section that fails it, or ""."""
        stepping, plan = item.stash.get(STEPPING, None), item.stash[PLAN]
        if stepping is not None:
            del item.stash[STEPPING]  # a rerun starts anew; the recordings are dropped
        self.running = None
        has_failed = stepping is not None and stepping.has_failed_parts
        test = unjudged(item, Outcome.FAILED if has_failed and outcome is Outcome.PASSED else outcome)
        if plan.refusal and test.outcome is Outcome.PASSED:
            self._take(unmeasured(test, MeasurementStatus.ERROR, plan.refusal))
            return ""
        if stepping is None or test.outcome is not Outcome.PASSED:
            if test.outcome is Outcome.SKIPPED and limits_growth(test.limits):
                self.notes[f"{test.node_id}: its growth was not judged: the test was skipped"] = None
            self._take(unmeasured(test, MeasurementStatus.NOT_RUN, f"the test was {test.outcome}"))
            return ""
        try:
            return self._failure(item, test, stepping)
        except FAULTS as error:  # the test's fixtures may have replaced anything
            self._take(unmeasured(test, MeasurementStatus.ERROR, fault(error)))
            return ""

    def _failure(self, item: pytest.Item, test: TestResult, stepping: Stepping) -> str:
        """Take a passed test's measurement; gives the section that fails the test, or ""."""
        found = self._found(item, test, stepping)
        test = measured_of(found)
        if test.timing.reason:
            self.notes[f"{test.node_id}: no wall time: {test.timing.reason}"] = None
        if isinstance(stepping, BenchmarkStepping) and test.is_usable:
            leave_summary(stepping.fixture, test, run_id=self._run_id)
        found = self._looks.confirmed(item, found)
        test = measured_of(found)
        self._take(test)
        self.judged[test.node_id] = found
        note_properties(item, found)
        traces = self._write_traces(found, test, stepping, by_marker=item.stash[PLAN].request.trace)
        if not self.fails(found) or found.verdict in NOT_THE_TESTS:
            return ""
        lines = failure_section(
            found,
            baseline=self.options.baseline,
            width=self.width,
            traces=traces,
            intended=test_acceptance(found.node_id, ACCEPT),
            show=showing(found.node_id),
        )
        return "\n".join(lines)

    def _found(self, item: pytest.Item, test: TestResult, stepping: Stepping) -> TestComparison:
        """A test's measurement and comparison. What a look has read is not read again."""
        found = self._looks.last(item, stepping)
        if found is not None and not (stepping.has_counted or item.stash[PLAN].request.size):
            return found
        if found is None:
            test = measured_or_error(test, stepping)
        else:
            test = with_instructions(measured_of(found), stepping.counted)
        return self.compare(self._scaling.with_exponent(item, test))

    def abandon(self) -> bool:
        """Note the test in which the session ended, without a report; says if one did."""
        if self.running is None:
            return False
        self._take(unmeasured(self.running, MeasurementStatus.NOT_RUN, "the session ended while it ran"))
        return True

    def fails(self, test: TestComparison) -> bool:
        """Whether a verdict fails and was requested: for all tests, or by this test's limits."""
        has_limits = test.head is not None and bool(test.head.limits)
        is_asked_for = self.options.baseline or self.options.save or has_limits
        return bool(is_asked_for) and self.fail_on.fails(test.verdict)

    def _take(self, test: TestResult) -> None:
        self.results[test.node_id] = test
        problems = Collector.instance().problems
        late = {problem_sentence(CUDA, problems[CUDA])} if CUDA in problems else set()
        self.notes |= dict.fromkeys(late - self.said)  # only a window with CUDA may know it
        lapses = set(Collector.instance().lapses.values()) & set(test.unheard.values())
        self.notes |= dict.fromkeys(f"{test.node_id}: {reason}" for reason in lapses)
        self._untold[test.node_id] = test

    def hand_over(self) -> None:
        """Give new results to the process that joins them, once a test's fixtures are gone.

        Until then they may replace the clock, `os.replace` or the whole file system.
        """
        untold, self._untold = self._untold, {}
        if self.exchange is None and self.shared.is_of_this_process:
            return
        for node_id, test in untold.items():
            notes = tuple(dict.fromkeys((*self.notes, *problem_sentences(Collector.instance().problems))))
            try:
                self.shared.put_result(replace(self.run_of([test]), notes=notes))
            except FAULTS as error:
                self.failures.append(f"{node_id}: {fault(error)}")
            else:
                self.handed_over.append(node_id)

    def compare(self, test: TestResult) -> TestComparison:
        """Judge a test by the session's baseline."""
        before = self.before.get(test.node_id)
        return compare_test(
            test, before, base=self.baseline.run, head=self.run_of([test]), policy=self.policy
        )

    def _write_traces(
        self, found: TestComparison, test: TestResult, stepping: Stepping, *, by_marker: bool
    ) -> list[str]:
        """Write the kept traces of a test; gives their paths for its section."""
        recordings = stepping.recordings
        told: list[str] = []
        try:
            told += map(shown, self.traces.asked_for(test, recordings, by_marker=by_marker))
            not_staged = self.traces.stage(test, recordings)
            told += filter(None, [self.traces.show(found, recordings, base=self.baseline.run)])
        except FAULTS as error:
            not_staged = f"{test.node_id}: {fault(error)}"
        if not_staged:
            self.notes[not_staged] = None
        return told

    # ---- for who prints and keeps ------------------------------------------------------------

    def table_of(self, test: TestResult) -> list[str]:
        """A test's op table; raises `UsageError` if the user's sort key or column is unknown."""
        options = self.options
        return op_table(test, sort_by=options.sort, columns=options.columns, rows=options.rows)

    @property
    def folder(self) -> Path:
        """The project's ``.opprof``."""
        return self.config.rootpath / FOLDER

    @property
    def width(self) -> int:
        """The columns of the terminal."""
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        return self.config.get_terminal_writer().fullwidth if reporter else _WIDTH

    def run_of(self, tests: Iterable[TestResult], *, measured_in: Environment | None = None) -> Run:
        """A run with these tests, measured here or in another environment."""
        here = measured_in or Environment(fingerprint=environment.fingerprint(), details=self.details)
        return Run(
            run_id=self._run_id,
            created=self._created,
            opprof_version=self._version,
            name=self.options.save,
            commit=self.baseline.commit,
            environment=here,
            tests=tuple(tests),
        )
