"""A test of two runs, judged by the exact gate."""

from dataclasses import replace

from support.documents.strategies import simple_run

from pytest_opprof.compare.comparison import TestComparison
from pytest_opprof.compare.sessions import Policy, compare_test
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.kinds import OpKind
from pytest_opprof.results.run import Environment, TestResult
from pytest_opprof.results.samples import Samples

TORCH_212 = Environment(fingerprint={"python": "3.11", "torch": "2.12.0"})


def compared(
    base: TestResult,
    head: TestResult,
    *,
    policy: Policy | None = None,
    environment: Environment | None = None,
) -> TestComparison:
    before = simple_run(base, name="main")
    if environment is not None:
        before = replace(before, environment=environment)
    return compare_test(head, base, base=before, head=simple_run(head), policy=policy)


def verdicts(found: TestComparison) -> dict[str, Verdict | None]:
    return {change.op or change.metric: change.verdict for change in found.changes}


def with_counts(test: TestResult, name: str, count: Samples) -> TestResult:
    """The test with another count of one op, and the matching total."""
    rows = tuple(row.with_metrics(count=count) if row.name == name else row for row in test.ops)
    others = Samples.constant(0, steps=test.steps)
    for row in rows:
        if row.kind is OpKind.OP:
            others = others.plus(row.count)
    return replace(test, ops=rows, totals={**test.totals, "ops.count": others})
