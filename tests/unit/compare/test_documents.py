"""Results of any two sessions can be compared, written, read back and accepted."""

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st
from support.documents.strategies import results, simple_run

from pytest_opprof.baselines.accepted import accept, read_accepted
from pytest_opprof.compare.accepting import accepted_of
from pytest_opprof.compare.comparison import Comparison
from pytest_opprof.compare.document import comparison_from_document, comparison_to_document
from pytest_opprof.compare.gates import parse_gate_options
from pytest_opprof.compare.sessions import Policy, compare_runs
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.results.document import run_from_document, run_to_document
from pytest_opprof.results.run import Measurement, MeasurementStatus, Outcome, TestResult
from pytest_opprof.results.schema import Contract, validate

NOW = simple_run().created
# requested by name, rows of every metric may fail, even negative ones
EVERY_ROW = Policy(
    command_line=parse_gate_options(
        ["*.count=exact", "*.cpu_memory=exact", "*.device_memory=exact", "*.flops=exact"]
    )
)
measured = results().map(lambda test: replace(test, outcome=Outcome.PASSED, measurement=Measurement()))
# a failing profiler's message, and a session of many tests
long_text = st.integers(4_000, 5_000).map("x".__mul__)


def compared(base: TestResult, head: TestResult) -> Comparison:
    return compare_runs(
        simple_run(base, name="main"), simple_run(head), created=NOW, opprof_version="0.1.0", policy=EVERY_ROW
    )


@given(measured, measured)
def test_every_comparison_survives_its_document(base: TestResult, head: TestResult) -> None:
    comparison = compared(base, head)
    document = json.loads(json.dumps(comparison_to_document(comparison)))
    validate(document, Contract.COMPARISON, where="comparison.json")
    read = comparison_from_document(document, where="comparison.json")
    assert read.tests == comparison.tests
    assert read.notes == comparison.notes


@given(measured, measured)
def test_every_regression_can_be_accepted(base: TestResult, head: TestResult) -> None:
    (test,) = compared(base, head).tests
    if not any(change.verdict is Verdict.REGRESSED and change.rule for change in test.changes):
        return
    entries = accepted_of(compared(base, head), test.node_id, metric=None, reason="meant", created=NOW)
    with TemporaryDirectory() as folder:
        accept(Path(folder), entries)
        assert {entry.key for entry in entries} == set(read_accepted(Path(folder)))


@given(measured, long_text, st.integers(150, 300))
def test_long_sentences_and_many_notes_are_cut_and_not_refused(
    test: TestResult, text: str, many: int
) -> None:
    broken = Measurement(status=MeasurementStatus.ERROR, reason=text)
    run = simple_run(replace(test, measurement=broken, unheard={"cuda": text}), notes=(text,) * many)
    document = json.loads(json.dumps(run_to_document(run)))
    validate(document, Contract.RUN, where="run.json")
    assert len(run_from_document(document, where="run.json").tests[0].measurement.reason) <= 4_096
    both = compare_runs(run, run, created=NOW, opprof_version="0.1.0", notes=run.notes)
    validate(comparison_to_document(both), Contract.COMPARISON, where="comparison.json")
