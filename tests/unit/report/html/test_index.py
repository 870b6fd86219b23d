"""The list of a page's tests."""

from support.documents.compared import compared, mixed, named, regressions, slower
from support.documents.strategies import cuda_test, simple_run

from pytest_opprof.report.html.data import page_index
from pytest_opprof.report.summary import Summary
from pytest_opprof.results.run import Outcome


def test_every_test_has_its_verdict_and_its_worst_change() -> None:
    index = page_index(Summary.of(mixed()))
    rows = {row["node_id"].rpartition("::")[2]: row for row in index["tests"]}
    assert [row["number"] for row in index["tests"]] == list(range(8))
    assert (rows["worse"]["verdict"], rows["worse"]["worst"]) == ("regressed", "aten::mul +1")
    assert rows["broken"]["worst"] == "it cannot be repeated"
    assert rows["worse"]["totals"]["ops.count"] == [2, 3]
    assert rows["new"]["totals"]["ops.count"] == [None, 1]


def test_totals_that_tests_have_are_columns() -> None:
    kernels = simple_run(cuda_test({"aten::mul": {"kernels": 2, "launches": 2}}))
    index = page_index(Summary.of(compared(None, kernels)))
    assert index["columns"] == ["ops.count", "kernels.count", "total.self_cpu_time_total"]
    assert index["totals"]["kernels.count"]["worse"] == "higher"


def test_unrun_tests_are_not_called_measured() -> None:
    run = simple_run(named("ran", {"aten::mul": 1}), named("failed", {}, outcome=Outcome.FAILED))
    rows = page_index(Summary.of(compared(None, run)))["tests"]
    assert [(row["verdict"], row["otherwise"]) for row in rows] == [(None, "measured"), (None, "not run")]


def test_cause_lists_its_first_tests() -> None:
    index = page_index(Summary.of(regressions(25)))
    (cause,) = index["causes"]
    assert [test["name"] for test in cause["tests"]] == [f"test_{at}" for at in range(20)]
    assert cause["more"] == 5
    assert [row["cause"] for row in index["tests"]] == [1] * 25


def test_tests_without_a_failure_have_no_cause() -> None:
    rows = page_index(Summary.of(mixed()))["tests"]
    assert {row["node_id"].rpartition("::")[2]: row["cause"] for row in rows if row["cause"]} == {
        "worse": 1,
        "limited": 2,
    }


def test_cause_of_an_ab_is_accepted_from_its_file() -> None:
    (cause,) = page_index(Summary.of(slower()))["causes"]
    assert cause["command"].startswith("opprof accept --comparison FILE tests/test_a.py::test_0")


def test_ab_has_the_quartiles() -> None:
    found = slower()
    index = page_index(Summary.of(found))
    (times,) = (row["times"] for row in index["tests"] if row["node_id"].endswith("test_1"))
    told = found.test("tests/test_a.py::test_1")
    assert index["has_times"]
    assert told is not None
    assert told.times is not None
    assert (times["base_ns"], times["head_ns"]) == told.times.quartiles
