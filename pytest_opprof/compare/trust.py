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

# Device fields, known once a process has started them; they matter to tests that use devices.
_OF_DEVICES = frozenset({"gpu_arch", "gpu_model", "gpu_driver", "cuda", "cudnn"})
# What can record calls: of Python, of modules, of CUDA.
_OF_CALLS = frozenset({Source.PYTHON, "modules", Source.CUDA})
# Another value of these may change nothing.
_HARMLESS = frozenset({"threads", "tracer"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """What makes two sides of a test incomparable."""

    base: TestResult
    head: TestResult
    environment: Mapping[str, str]  # by field, the difference in words
    harmless: frozenset[str] = frozenset()  # fields of these that do not matter to equal values

    @classmethod
    def between(
        cls, base: TestResult, head: TestResult, *, environments: tuple[Environment, Environment]
    ) -> Trust:
        """Look at both sides' sources, completeness and environments (the base's first)."""
        sides = _around(environments[0], base), _around(environments[1], head)
        different = differences(*sides)
        # A side without a package has not imported it, or not installed it.
        harmless = OF_PACKAGES & (sides[0].fingerprint.keys() ^ sides[1].fingerprint.keys()) | _HARMLESS
        if not (_used_devices(base) or _used_devices(head)):
            # Whether devices are known by then may depend on the order of tests.
            different = {field: words for field, words in different.items() if field not in _OF_DEVICES}
        return cls(base=base, head=head, environment=different, harmless=harmless & different.keys())

    @property
    def passed_over(self) -> tuple[str, ...]:
        """The differences, in words, that matter to no exact value that is equal on both sides."""
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
        is_one_sided: bool = False,
    ) -> str:
        """Why a metric's two values must not be compared; empty if they may.

        If both are 0, environments do not matter; but lost events may have run. If both are the same, some
        differences of their environments are harmless. Calls that only one side has may be those that only it
        recorded.
        """
        # An op's count needs what the total of its kind needs.
        through = metric
        if metric.scope is Scope.OP and metric.source is None:
            through = _total_of(kind)
        if is_nothing:
            return self._lost(metric) or self._device_gap(through) or self._sampled(through, kind)
        depends_on = metric.depends_on if metric.family is Family.TIME else through.depends_on
        return (
            self.left_out(metric, kind=kind)
            or self._other_views(metric)
            or self._other_sources(_recorders_of(through))
            or (self._other_sources(_recorders_of(_total_of(kind))) if metric.scope is Scope.OP else "")
            or (self._other_sources(_OF_CALLS) if kind is OpKind.CALL and is_one_sided else "")
            or self._other_environment(depends_on, family=metric.family, is_same=is_same)
            or self._other_compile_cache(depends_on)
            or self._lost(metric)
            or self._nameless(metric)
            or self._device_gap(through)
            or self._sampled(through, kind)
        )

    @property
    def has_only_counts(self) -> bool:
        """Whether a side lacks the rows of calls and of the background."""
        return self.base.has_only_counts or self.head.has_only_counts

    def left_out(self, metric: Metric, *, kind: OpKind | None = None) -> str:
        """Why the base can never have a metric; empty if it can."""
        is_left_out = metric.family is Family.BOUNDED or kind is OpKind.CALL
        if not (self.base.has_only_counts and is_left_out):
            return ""
        return "a counts: file does not store it, so use another store"

    def _other_sources(self, known: frozenset[str]) -> str:
        before, after = (sorted(known.intersection(side.sources)) for side in (self.base, self.head))
        if before == after:
            return ""
        reason = next((why for source, why in self.head.unheard.items() if source in known), "")
        here = f"{_listed(after)} here{f' ({reason})' if reason else ''}"
        return f"captured by {_listed(before)} in the base, by {here}"

    def _other_views(self, metric: Metric) -> str:
        """A base that counts views as ops can be converted (`compare.views`); a head cannot."""
        is_other = self.base.tells_views and not self.head.tells_views and Source.OPS in self.head.sources
        return "only this run counts views as ops" if metric is OPS_COUNT and is_other else ""

    def _of_memory(self, fields: frozenset[str]) -> frozenset[str]:
        """The fields, without those of memory that neither side watched."""
        return of_watched_memory(fields, (*self.base.sources, *self.head.sources))

    def _other_environment(self, fields: frozenset[str], *, family: Family, is_same: bool) -> str:
        if family is not Family.TIME:
            fields = self._of_memory(fields) - (self.harmless if is_same else frozenset())
        different = [words for field, words in self.environment.items() if field in fields]
        return f"measured in another environment: {', '.join(different)}" if different else ""

    def _other_compile_cache(self, fields: frozenset[str]) -> str:
        """Why cold and warm differ here. A certificate that saw both compares with either."""
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
        """Totals are still right; but an op that must not appear may be among the nameless."""
        if metric.scope is Scope.OP or metric is OPS_COUNT:
            for test, side in ((self.base, "the base"), (self.head, "this run")):
                if test.capture.names_overflowed:
                    return f"too many names in {side}: some ops have no row of their own"
        return ""

    def _device_gap(self, through: Metric) -> str:
        """What is missing of devices; the rest would look whole."""
        if not through.is_of_devices:
            return ""
        for test, side in ((self.base, "the base"), (self.head, "this run")):
            if gap := test.capture.device_gap:
                return f"{gap} in {side}"
        return ""

    def _sampled(self, through: Metric, kind: OpKind | None) -> str:
        """Why a sample of ops is not exact. Ranges and calls are all recorded."""
        is_whole = through.source is Source.CUDA and (kind is None or kind.is_on_device)
        if through is RANGES_COUNT or kind is OpKind.CALL or is_whole:
            return ""
        for test, side in ((self.base, "the base"), (self.head, "this run")):
            if test.capture.is_sampled:
                share = format_share(test.capture.sampled_ppm / EVERY_PPM)
                return f"{side} recorded only {share} of the ops (sampling)"
        return ""


def _around(environment: Environment, test: TestResult) -> Environment:
    """A test's own environment: the run's is that of its end, and a setting may be later."""
    fields = {name: value for name, value in environment.fingerprint.items() if name not in SETTINGS}
    return Environment(fingerprint=fields | dict(test.settings))


def _used_devices(test: TestResult) -> bool:
    return any(
        test.totals[metric.name].high for metric in TOTAL_OF_COUNT.values() if metric.name in test.totals
    )


def _recorders_of(metric: Metric) -> frozenset[Source]:
    return ANSWERS[metric.source] if metric.source else frozenset()


def _total_of(kind: OpKind | None) -> Metric:
    """The total that counts a kind."""
    if kind is OpKind.RANGE:
        return RANGES_COUNT
    return KERNELS_COUNT if kind is not None and kind.is_on_device else OPS_COUNT


def _listed(sources: Sequence[str]) -> str:
    return " and ".join(sources) or "nothing"
