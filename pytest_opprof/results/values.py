"""The value of a metric in a test's result, by the metric's path."""

from __future__ import annotations

from functools import reduce

from pytest_opprof.metrics import MetricPath, matches
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples


def value_in(test: TestResult, path: MetricPath) -> Samples | None:
    """A metric of a test in each step; for a pattern, the sum of the matching ops.

    None if the test does not know: its source was not recorded, or rows were left out.
    """
    if path.op is None:
        return test.totals.get(path.metric.name)
    if not path.metric.answers(test.sources):
        return None
    rows = [row for row in test.ops if not row.background and matches(path.op, row.name)]
    if rows:
        return reduce(Samples.plus, (row.samples(path.metric.name) for row in rows))
    # An op that did not run has 0 calls, unless it may be among the omitted rows.
    return None if test.ops_omitted else Samples.constant(0, steps=test.steps)
