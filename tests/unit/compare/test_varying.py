"""A save's report on gates with varying values."""

from dataclasses import replace

from support.documents.strategies import simple_test

from pytest_opprof.compare.gates import Gates, parse_gates, varying_note
from pytest_opprof.results.run import Outcome, TestResult
from pytest_opprof.results.samples import Samples

EVEN = simple_test({"aten::mul": 4, "aten::item": 1})
UNEVEN = replace(EVEN, totals={**EVEN.totals, "ops.count": Samples.of([1, 2, 3])})


def note(*tests: TestResult, gates: Gates | None = None) -> str:
    return varying_note(tests, lambda _: gates or Gates())


def test_a_save_names_tests_with_a_gate_that_varies() -> None:
    many = [replace(UNEVEN, node_id=f"t.py::{at}") for at in range(5)]
    assert note(EVEN, many[0]) == (
        "1 test has counts that vary, so gates only hold it to its range: t.py::0 (ops.count 1 to 3)"
    )
    assert note(*many).startswith(
        "5 tests have counts that vary, so gates only hold them to their range: t.py::0"
    )
    assert note(*many).endswith("t.py::2 (ops.count 1 to 3), and 2 more")


def test_a_watched_op_that_another_process_contradicted_is_named() -> None:
    unstable = replace(EVEN, unstable=("aten::item.count",))
    assert note(unstable).endswith("(aten::item.count 1)")


def test_ungated_values_are_not_mentioned() -> None:
    peak = replace(EVEN, totals={**EVEN.totals, "cpu_memory.peak": Samples.of([1000, 1005, 1000])})
    assert note(EVEN, peak, replace(UNEVEN, outcome=Outcome.FAILED)) == ""
    assert note(UNEVEN, gates=parse_gates({"ops.count": "off"}, where="x")) == ""
