"""The value of a metric in a test's result, by the metric's path."""

from __future__ import annotations

from functools import reduce

from pytest_opprof.metrics import MetricPath, matches
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples


def value_of(test: TestResult, path: MetricPath) -> Samples | None:
    """A metric of a test in each step, None without the total: for a pattern, the sum of the matching ops."""
    if path.op is None:
        return test.totals.get(path.metric.name)
    rows = (row for row in test.ops if not row.background and matches(path.op, row.name))
    values = (row.samples(path.metric.name) for row in rows)
    return reduce(Samples.plus, values, Samples.constant(0, steps=test.steps))


def value_in(test: TestResult, path: MetricPath) -> Samples | None:
    """The same; None if the test does not know: its source was not recorded, or rows were left out."""
    if path.op is None:
        return value_of(test, path)
    # An op that did not run has 0 calls, unless it may be among the omitted rows.
    has_row = any(not row.background and matches(path.op, row.name) for row in test.ops)
    is_known = path.metric.answers(test.sources) and (has_row or not test.ops_omitted)
    return value_of(test, path) if is_known else None
