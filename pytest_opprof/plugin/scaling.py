"""How the Python instructions of a parametrized test grow with a size: the exponent, from exact counts."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pytest
from _pytest.skipping import evaluate_skip_marks

from pytest_opprof.errors import UsageError
from pytest_opprof.metrics import SCALING, Source, parse_path
from pytest_opprof.metrics.host import INSTRUCTION_TOTALS
from pytest_opprof.plugin.counting import PYTHON, certified_counts
from pytest_opprof.plugin.marker import is_size, parameters_of
from pytest_opprof.plugin.plans import PLAN
from pytest_opprof.plugin.shortfall import FAULTS
from pytest_opprof.results.build import most_of
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples
from pytest_opprof.units import ONE_IN_THOUSANDTHS

_MOST: Final = 3  # named functions


class Scaling:
    """Remembers the counts of one function's tests, by size."""

    def __init__(self) -> None:
        self._counted: defaultdict[Hashable, dict[float, TestResult]] = defaultdict(dict)

    def with_exponent(self, item: pytest.Item, test: TestResult) -> TestResult:
        """The test with its exponent if its marker limits that, or why there is none."""
        if not item.stash[PLAN].request.size:
            return test
        family, size = _family(item), _size(item)
        if _count(test) is not None:
            self._counted[family][size] = test
        if not limits_growth(test.limits):
            return test
        largest, *others = sorted(self._counted[family].items(), reverse=True) or [(0, test)]
        if _count(test) is None or not others:
            return replace(test, unheard={**test.unheard, Source.SCALING: _why_not(item, test)})
        return _with_exponent(test, smaller=others[0], larger=largest)


def leave_limit_to_the_last(items: Sequence[pytest.Item]) -> None:
    """Judge the limit on the exponent once per family, after its last size that no mark skips.

    Raises `UsageError` if a marker names a parameter that the test lacks or that is not a size.
    """
    sized = (item for item in items if item.stash[PLAN].request.size)
    last = {_family(item): item for item in sized if not _is_skipped(item)}
    for item in items:
        plan = item.stash[PLAN]
        is_limited = limits_growth(plan.limits)
        if plan.request.size or is_limited:
            _size(item)
        if is_limited and last.get(_family(item)) is not item:
            kept = {path: limit for path, limit in plan.limits.items() if not _is_on_scaling(path)}
            item.stash[PLAN] = replace(plan, limits=kept)


def limits_growth(limits: Iterable[str]) -> bool:
    """Whether one of these limits is on the exponent."""
    return any(map(_is_on_scaling, limits))


def _with_exponent(
    test: TestResult, *, smaller: tuple[float, TestResult], larger: tuple[float, TestResult]
) -> TestResult:
    (n, before), (m, after) = smaller, larger
    counts, counts_now = (_count(side) or 0 for side in (before, after))
    exponent = math.log(counts_now / counts) / math.log(m / n)
    return replace(
        test,
        sources=(*test.sources, Source.SCALING.value),
        totals={
            **test.totals,
            # Work that falls does not grow: a document's counts are never negative.
            SCALING.name: Samples.constant(max(round(exponent * ONE_IN_THOUSANDTHS), 0), steps=test.steps),
        },
        functions={**test.functions, SCALING.name: _growing(before, after, by=m / n)},
    )


def _growing(before: TestResult, after: TestResult, *, by: float) -> Mapping[str, int]:
    """The functions that grow most, with their exponents and their growth in instructions."""
    counts, counts_now = _functions(before), _functions(after)
    grown = most_of(counts_now - counts)
    told = list(grown)[:_MOST]
    exponents = {
        name: math.log(counts_now[name] / counts[name]) / math.log(by) for name in told if counts[name]
    }
    return {f"{name}: n^{exponents[name]:.2f}" if name in exponents else name: grown[name] for name in told}


def _functions(test: TestResult) -> Counter[str]:
    each = (Counter(test.functions.get(metric.name, {})) for metric in INSTRUCTION_TOTALS)
    return sum(each, Counter[str]())


def _count(test: TestResult) -> int | None:
    """Instructions of the project and of libraries; None if they vary or were not counted."""
    return sum(certified_counts(test, PYTHON) or ()) or None


def _why_not(item: pytest.Item, test: TestResult) -> str:
    if _count(test) is None:
        return "its Python instructions were not counted, or varied"
    return (
        f"only {item.stash[PLAN].request.size}={_size(item):g} was counted in this process: run all sizes in "
        "one process (without --lf; with pytest-xdist: --dist loadfile)"
    )


def _is_on_scaling(path: str) -> bool:
    return parse_path(path, where="limits").metric is SCALING


def _is_skipped(item: pytest.Item) -> bool:
    """Whether its marks skip it."""
    try:
        return evaluate_skip_marks(item) is not None
    except FAULTS:  # the test will fail for it
        return False


def _family(item: pytest.Item) -> Hashable:
    """A parametrized test with the values of its other parameters."""
    size, params = item.stash[PLAN].request.size, parameters_of(item)
    others = tuple(sorted((name, repr(value)) for name, value in params.items() if name != size))
    return item.nodeid.partition("[")[0], others


def _size(item: pytest.Item) -> float:
    name = item.stash[PLAN].request.size
    where = f"@pytest.mark.profile of {item.nodeid}"
    if not name:
        raise UsageError(f'{where}: a limit on {SCALING.name} needs the parameter that is the size: size="n"')
    params = parameters_of(item)
    if name not in params:
        known = ", ".join(params) or "none"
        raise UsageError(f"{where}: size={name!r} is not a parameter of the test (there are: {known})")
    value = params[name]
    if not is_size(value):
        raise UsageError(f"{where}: the size {name} must be a number above 0, not {value!r}")
    return float(value)
