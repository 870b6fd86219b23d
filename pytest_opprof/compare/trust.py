"""May two values be compared at all? Each reason why not, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import ANSWERS, OPS_COUNT, RANGES_COUNT, TOTALS, Family, Metric, Scope, Source
from pytest_opprof.metrics.device import KERNELS_COUNT, TOTAL_OF_COUNT
from pytest_opprof.metrics.fingerprint import COMPILE_CACHE, OF_PACKAGES, SETTINGS
from pytest_opprof.metrics.metric import of_watched_memory
from pytest_opprof.results.merge import differences
from pytest_opprof.results.run import Environment, TestResult
from pytest_opprof.units import EVERY_PPM, format_share

# What is known of devices once a process has started them, and matters to tests that use them.
_OF_DEVICES = frozenset({"gpu_arch", "gpu_model", "gpu_driver", "cuda", "cudnn"})
# Of these another value may change nothing.
_HARMLESS = frozenset({"threads", "tracer"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """What stands between two sides of one test.

    Attributes:
        environment: By field, words for what differs.
        harmless: Fields of these that change nothing where two values are equal.
    """

    base: TestResult
    head: TestResult
    environment: Mapping[str, str]
    harmless: frozenset[str] = frozenset()

    @classmethod
    def between(
        cls, base: TestResult, head: TestResult, *, environments: tuple[Environment, Environment]
    ) -> Trust:
        """Look at both sides' sources, completeness and environments (the base's first)."""
        sides = _around(environments[0], base), _around(environments[1], head)
        different = differences(*sides)
        # Who knows nothing of a package has not imported it, or does without.
        harmless = OF_PACKAGES & (sides[0].fingerprint.keys() ^ sides[1].fingerprint.keys()) | _HARMLESS
        if not (_used_devices(base) or _used_devices(head)):
            # Whether a session has met its devices by then may depend on the order of its tests.
            different = {field: words for field, words in different.items() if field not in _OF_DEVICES}
        return cls(base=base, head=head, environment=different, harmless=harmless & different.keys())

    @property
    def passed_over(self) -> tuple[str, ...]:
        """What differs, in words, and stands in the way of no exact value that is the same on both sides."""
        metrics = (TOTALS[name] for name in self.base.totals if name in TOTALS)
        exact = (metric.depends_on for metric in metrics if metric.family is not Family.TIME)
        fields = self._of_memory(frozenset[str]().union(*exact)) & self.harmless
        return tuple(words for field, words in self.environment.items() if field in fields)

    def objection(
        self,
        metric: Metric,
        *,
        kind: OpKind | None = None,
        is_nothing: bool = False,
        is_same: bool = False,
    ) -> str:
        """Why a metric's two values must not be compared; empty where they may.

        Args:
            kind: What the op is, for a metric of one op.
            is_nothing: Neither side has any of it. What did not run ran in no environment; but what was
                lost may have run.
            is_same: Both sides have the same value: some differences of their environments are harmless.
        """
        # An op's count needs what the total of its kind needs.
        through = metric
        if metric.scope is Scope.OP and metric.source is None:
            through = _total_of(kind)
        if is_nothing:
            return self._lost(metric) or self._device_gap(through) or self._sampled(through, kind)
        depends_on = metric.depends_on if metric.family is Family.TIME else through.depends_on
        return (
            self._other_views(metric)
            or self._other_sources(through)
            or (self._other_sources(_total_of(kind)) if metric.scope is Scope.OP else "")
            or self._other_environment(depends_on, family=metric.family, is_same=is_same)
            or self._other_compile_cache(depends_on)
            or self._lost(metric)
            or self._nameless(metric)
            or self._device_gap(through)
            or self._sampled(through, kind)
        )

    def _other_sources(self, metric: Metric) -> str:
        if metric.source is None:
            return ""
        known = ANSWERS[metric.source]
        before, after = (sorted(known.intersection(side.sources)) for side in (self.base, self.head))
        if before == after:
            return ""
        reason = next((why for source, why in self.head.unheard.items() if source in known), "")
        here = f"{_listed(after)} here{f' ({reason})' if reason else ''}"
        return f"captured by {_listed(before)} in the base, by {here}"

    def _other_views(self, metric: Metric) -> str:
        """A base that counts views as ops can be told apart (`compare.views`); here they would be a rise."""
        is_other = self.base.tells_views and not self.head.tells_views and Source.OPS in self.head.sources
        return "views count as ops in this run alone" if metric is OPS_COUNT and is_other else ""

    def _of_memory(self, fields: frozenset[str]) -> frozenset[str]:
        """The fields without what matters only to memory that neither side watched."""
        return of_watched_memory(fields, (*self.base.sources, *self.head.sources))

    def _other_environment(self, fields: frozenset[str], *, family: Family, is_same: bool) -> str:
        if family is not Family.TIME:
            fields = self._of_memory(fields) - (self.harmless if is_same else frozenset())
        different = [words for field, words in self.environment.items() if field in fields]
        return f"measured in another environment: {', '.join(different)}" if different else ""

    def _other_compile_cache(self, fields: frozenset[str]) -> str:
        """A certified value was often seen with both, the second time warm: then it depends on neither."""
        before, after = self.base.compile_cache, self.head.compile_cache
        if COMPILE_CACHE not in fields or not before or not after or set(before) & set(after):
            return ""
        return f"compiled with a {after[0]} cache here, with a {before[0]} one in the base"

    def _lost(self, metric: Metric) -> str:
        if metric.family is Family.TIME:
            return ""
        for test, side in ((self.base, "the base"), (self.head, "this run")):
            capture = test.capture
            if capture.dropped:
                return f"{capture.dropped} events were dropped in {side}"
            if capture.truncated:
                return f"the recording of {side} was cut off at its byte budget"
        return ""

    def _nameless(self, metric: Metric) -> str:
        """A total is right all the same; but an op that must not appear may be among the nameless."""
        if metric.scope is Scope.OP or metric is OPS_COUNT:
            for test, side in ((self.base, "the base"), (self.head, "this run")):
                if test.capture.names_overflowed:
                    return f"{side} had too many names to keep a row of each"
        return ""

    def _device_gap(self, through: Metric) -> str:
        """What is not known of devices; the rest would look whole."""
        if not through.is_of_devices:
            return ""
        for test, side in ((self.base, "the base"), (self.head, "this run")):
            if gap := test.capture.device_gap:
                return f"{gap} in {side}"
        return ""

    def _sampled(self, through: Metric, kind: OpKind | None) -> str:
        """Why a share of the ops tells nothing exact. Ranges and calls are all recorded."""
        is_whole = through.source is Source.CUDA and (kind is None or kind.is_on_device)
        if through is RANGES_COUNT or kind is OpKind.CALL or is_whole:
            return ""
        for test, side in ((self.base, "the base"), (self.head, "this run")):
            if test.capture.is_sampled:
                share = format_share(test.capture.sampled_ppm / EVERY_PPM)
                return f"{side} recorded {share} of the ops, by sampling"
        return ""


def _around(environment: Environment, test: TestResult) -> Environment:
    """Where a test was measured: what its run says was so at its end, and a setting may have come later."""
    fields = {name: value for name, value in environment.fingerprint.items() if name not in SETTINGS}
    return Environment(fingerprint=fields | dict(test.settings))


def _used_devices(test: TestResult) -> bool:
    return any(
        test.totals[metric.name].high for metric in TOTAL_OF_COUNT.values() if metric.name in test.totals
    )


def _total_of(kind: OpKind | None) -> Metric:
    """What says how much of a kind ran."""
    if kind is OpKind.RANGE:
        return RANGES_COUNT
    return KERNELS_COUNT if kind is not None and kind.is_on_device else OPS_COUNT


def _listed(sources: Sequence[str]) -> str:
    return " and ".join(sources) or "nothing"
