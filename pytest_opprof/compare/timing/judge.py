"""Judge the times of two sides, measured alternately on one machine: what became slower, and why.

A test whose times differ by enough to matter, and by more than the base's from themselves, is measured once
more. It is REGRESSED if the first processes differ significantly (`significance`), corrected for the number
of tests, and fresh ones agree; or if only the fresh ones do, but beyond doubt. If there is no answer, it is
INCONCLUSIVE.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from pytest_opprof.compare.comparison import Comparison, TestComparison
from pytest_opprof.compare.phrases import name_of
from pytest_opprof.compare.sessions import Policy, compare_runs
from pytest_opprof.compare.timing import samples, verdicts
from pytest_opprof.compare.timing.comparison import Control, Sides, TestTimes, TimeComparison, TimeSettings
from pytest_opprof.compare.timing.ops import cause_of, explain
from pytest_opprof.compare.verdicts import Verdict, severity_of, worst
from pytest_opprof.errors import UsageError
from pytest_opprof.metrics.fingerprint import FINGERPRINT_FIELDS, GUEST, LIBRARIES, SETTINGS
from pytest_opprof.results.agreement import repeated
from pytest_opprof.results.merge import differences
from pytest_opprof.results.names import bounded_text
from pytest_opprof.results.run import Environment, Run, TestResult
from pytest_opprof.units import EVERY_PPM, Unit, format_change, format_quantity
from pytest_opprof.wording import listed

# What two processes must share for comparable times; other differences may be intended.
_OF_THE_HOST = frozenset({"machine", "cpu_model", "cpu_count", "gpu_model", "gpu_driver"})
# What the processes of a side must share too.
_OF_A_SIDE = FINGERPRINT_FIELDS.keys() - SETTINGS
# What tests must share too, whatever ran before them.
_INSTALLED = frozenset({LIBRARIES, GUEST})


def compare_times(
    base: Sequence[Run],
    head: Sequence[Run],
    *,
    settings: TimeSettings | None = None,
    confirmation: tuple[Sequence[Run], Sequence[Run]] | None = None,
    policy: Policy | None = None,
) -> TimeComparison:
    """Judge an A/B: one run for each process of a side, in the order in which they ran, by turns.

    The same runs always give the same answer. Fresh processes should confirm the tests in its ``flagged``:
    their runs of the base and of the head are the `confirmation`.
    """
    for name, side in (("base", base), ("head", head)):
        if not side:
            raise UsageError(f"no process of the {name} finished: there is nothing to compare")
    settings = settings or TimeSettings()
    evidence = _Evidence(base, head, settings=settings, confirmation=confirmation, policy=policy)
    tests = [_in_bounds(evidence.judged(node_id)) for node_id in evidence.tests]
    # A stable sort: tests of one verdict stay in the order in which they ran.
    tests.sort(key=lambda test: severity_of(test.verdict))
    return TimeComparison(
        exact=evidence.exact,
        settings=settings,
        base_processes=len(base),
        head_processes=len(head),
        control=evidence.control,
        notes=(*_notes(base, head), *samples.disturbances(evidence.tests, settings=settings)),
        tests=tuple(tests),
    )


class _Evidence:
    """All tests of both sides, the rounds' findings, and obstacles for all of them."""

    def __init__(
        self,
        base: Sequence[Run],
        head: Sequence[Run],
        *,
        settings: TimeSettings,
        confirmation: tuple[Sequence[Run], Sequence[Run]] | None,
        policy: Policy | None,
    ) -> None:
        self.settings = settings
        self.tests = samples.readings_by_test(base, head)
        self.again = None if confirmation is None else samples.readings_by_test(*confirmation)
        self.exact = _exact(base, head, tests=self.tests, policy=policy)
        self.times = {
            node_id: samples.wall_times(test, settings=settings) for node_id, test in self.tests.items()
        }
        timed = {node_id: sides for node_id, sides in self.times.items() if isinstance(sides, Sides)}
        self.control, self.noise_ppm = verdicts.control_of(timed, settings=settings)
        again = confirmation or ((), ())
        everywhere = _other_host([*base, *head, *again[0], *again[1]])
        everywhere = everywhere or _mixed("base", [*base, *again[0]]) or _mixed("head", [*head, *again[1]])
        everywhere = everywhere or _failed_control(self.control)
        changed = _other_settings("base", [*base, *again[0]]) | _other_settings("head", [*head, *again[1]])
        self.objections = {
            node_id: everywhere
            or changed.get(node_id)
            or verdicts.too_few(sides, tests=len(timed), settings=settings)
            or verdicts.too_noisy(self.noise_ppm.get(node_id, 0), settings=settings)
            for node_id, sides in timed.items()
        }
        judged = {node_id: sides for node_id, sides in timed.items() if not self.objections[node_id]}
        self.findings = verdicts.first_round(judged, noise=self.noise_ppm, settings=settings)

    def judged(self, node_id: str) -> TestTimes:
        """One test with the verdict on its times and its exact gates."""
        exact, sides = self.exact.test(node_id), self.times[node_id]
        if isinstance(sides, samples.Refusal):
            refused = TestTimes(node_id=node_id, verdict=sides.verdict, reason=sides.reason)
            # Counts and limits may be judged without times, unless the test did not run.
            has_counts = sides.verdict in {Verdict.INCONCLUSIVE, Verdict.NEW}
            return _with_exact(refused, exact) if has_counts else refused
        bare = TestTimes(node_id=node_id, verdict=None, noise_ppm=self.noise_ppm.get(node_id), times=sides)
        if objection := self.objections[node_id]:
            return _with_exact(replace(bare, verdict=Verdict.INCONCLUSIVE, reason=objection), exact)
        finding = self.findings.get(node_id)
        if finding is None:
            return _with_exact(replace(bare, verdict=Verdict.PASS, reason=self._blind_spot(node_id)), exact)
        confirmation = self._confirmation(node_id)
        verdict, reason = verdicts.verdict_on(
            sides,
            finding,
            confirmation=confirmation,
            below=verdicts.confirmed_below(self.findings, finding),
            settings=self.settings,
        )
        rounds = [self.tests[node_id]]
        if self.again is not None and isinstance(confirmation, Sides):
            rounds.append(self.again[node_id])
        counted = [samples.undisturbed(each, settings=self.settings) for each in rounds]
        ops = explain(counted, sides, finding.direction)
        found = replace(
            bare,
            verdict=verdict,
            reason=reason,
            cause="" if verdict is Verdict.PASS else cause_of(ops, sides),
            flagged=finding.direction,
            confirmation=confirmation if isinstance(confirmation, Sides) else None,
            ops=ops,
        )
        return _with_exact(found, exact)

    def _confirmation(self, node_id: str) -> Sides | samples.Refusal | None:
        if self.again is None:
            return None
        if node_id not in self.again:
            return samples.Refusal(verdict=Verdict.INCONCLUSIVE, reason="no fresh process ran it")
        return samples.wall_times(self.again[node_id], settings=self.settings)

    def _blind_spot(self, node_id: str) -> str:
        """A sentence on a passed test whose noise exceeds the change of interest."""
        noise_ppm = self.noise_ppm.get(node_id, 0)
        if noise_ppm <= self.settings.min_effect * EVERY_PPM:
            return ""
        noise = format_quantity(noise_ppm, unit=Unit.PPM)
        return f"a change below {noise} would not be seen, because its base differs from itself by that much"


def _with_exact(found: TestTimes, exact: TestComparison | None) -> TestTimes:
    """The worse of both verdicts; the reason begins with the one that decided."""
    if exact is None or exact.verdict is None:
        return found
    verdict = worst((found.verdict, exact.verdict))
    if exact.verdict in {Verdict.PASS, Verdict.NEW}:
        return replace(found, verdict=verdict)
    reasons = [found.reason, exact.reason]
    if verdict is not found.verdict:
        reasons.reverse()
    return replace(
        found,
        verdict=verdict,
        reason="; ".join(filter(None, reasons)),
        cause=found.cause or _exact_cause(exact),
    )


def _exact_cause(exact: TestComparison) -> str:
    """The first op that rose: ``aten::clone +2, new in forward, model.py:41``."""
    risen = [change for change in exact.changes if change.verdict is exact.verdict and change.rise]
    first = next((change for change in risen if change.op is not None), risen[0] if risen else None)
    if first is None:
        return ""
    told = f"{name_of(first)} {format_change(first.rise, unit=first.about.unit)}"
    return f"{told}, {first.cause}" if first.cause else told


def _exact(
    base: Sequence[Run], head: Sequence[Run], *, tests: Mapping[str, samples.Readings], policy: Policy | None
) -> Comparison:
    """The exact gates on what all processes of a side agree on: each is another's certificate."""
    before = replace(base[0], tests=tuple(_agreed(test.base) for test in tests.values() if test.base))
    after = replace(head[0], tests=tuple(_agreed(test.head) for test in tests.values() if test.head))
    return compare_runs(
        before,
        after,
        created=max(run.created for run in (*base, *head)),
        opprof_version=head[0].opprof_version,
        policy=policy,
    )


def _agreed(results: Sequence[TestResult]) -> TestResult:
    """The first process's measurement, widened where another process's exact metrics differ."""
    first = next((test for test in results if test.is_usable), results[0])
    others = (test for test in results if test is not first)
    return functools.reduce(lambda one, other: repeated(one, other, fresh_process=True), others, first)


def _other_host(runs: Sequence[Run]) -> str:
    """Why processes of two machines are not compared; empty if there was one machine."""
    words = _differing([run.environment for run in runs], _OF_THE_HOST)
    return f"measured on more than one machine: {words}" if words else ""


def _mixed(name: str, runs: Sequence[Run]) -> str:
    """Why a side's processes cannot be pooled, as after an upgrade and `--resume`; empty if they can."""
    return _changed(name, [run.environment for run in runs], _OF_A_SIDE)


def _other_settings(name: str, runs: Sequence[Run]) -> dict[str, str]:
    """The same of single tests, which have settings of their own, by node id.

    Tests may change settings, so only processes that ran the same tests before must agree on them.
    """
    groups = defaultdict[tuple[str, int | None], list[Environment]](list)
    for run in runs:
        before = 0
        for test in run.tests:
            own = Environment(fingerprint=test.settings)
            groups[test.node_id, None].append(own)
            groups[test.node_id, before].append(own)
            before = hash((before, test.node_id))
    found = {}
    for (node_id, same), group in groups.items():
        if why := _changed(name, group, _INSTALLED if same is None else SETTINGS):
            found[node_id] = why
    return found


def _changed(name: str, environments: Sequence[Environment], fields: Collection[str]) -> str:
    words = _differing(environments, fields)
    return f"the environment of the {name} changed meanwhile: {words}" if words else ""


def _differing(environments: Sequence[Environment], fields: Collection[str]) -> str:
    """The first difference in these fields, in words; a process may not know all fields."""
    for one in environments:
        different = differences(environments[0], one, ignore_unknown=True)
        if words := [text for field, text in different.items() if field in fields]:
            return ", ".join(words)
    return ""


def _failed_control(control: Control) -> str:
    if not control.flagged:
        return ""
    tests = listed(control.flagged, most=1)
    return f"the base differs from itself in {tests}: this machine cannot judge times now"


def _in_bounds(test: TestTimes) -> TestTimes:
    """The same with sentences cut to a document's limit: names in them may be long."""
    reason, cause = map(bounded_text, (test.reason, test.cause))
    return replace(test, reason=reason, cause=cause)


def _notes(base: Sequence[Run], head: Sequence[Run]) -> tuple[str, ...]:
    """What differs between the sides besides the code."""
    different = differences(base[0].environment, head[0].environment)
    words = [text for field, text in different.items() if field not in _OF_THE_HOST]
    return (f"not only the code differs: {', '.join(words)}",) if words else ()
