"""Metrics as read by Prometheus' own parser and by GitLab."""

from support.documents.compared import cloning, compared, named
from support.documents.metric_lines import by_gitlab, by_prometheus
from support.documents.strategies import simple_run

from pytest_opprof.report.openmetrics import openmetrics
from pytest_opprof.results.samples import Samples


def test_exact_totals_are_gauges_of_each_test() -> None:
    text = openmetrics(cloning())
    test = "tests/test_model.py::test_step"
    assert by_prometheus(text) == {("opprof_ops_count", test): 25, ("opprof_ranges_count", test): 0}
    assert by_gitlab(text) == {
        f"opprof_ops_count{{test={test}}}": "25",
        f"opprof_ranges_count{{test={test}}}": "0",
    }


def test_varying_values_are_left_out() -> None:
    unsteady = named("test_a", {"aten::mul": 1})
    unsteady.totals["ops.count"] = Samples.of([1, 2, 1])  # type: ignore[index] # a dict, to build with
    steady = named("test_b", {"aten::mul": 3})
    text = openmetrics(compared(None, simple_run(steady, unsteady)))
    assert {test for name, test in by_prometheus(text) if name == "opprof_ops_count"} == {
        "tests/test_model.py::test_b"
    }
    assert "cpu_time" not in text
    # in the order of names, not in run order
    lines = [line for line in text.splitlines() if line.startswith("opprof_ranges_count")]
    assert lines == sorted(lines)
    assert len(lines) == 2


def test_names_stay_apart_and_whole() -> None:
    odd = ['a"b', "a\\nb", "a\nb", "a#b", "a\\x23b", "a b} 7"]
    text = openmetrics(compared(None, simple_run(*(named(name, {"aten::mul": 1}) for name in odd))))
    assert len(by_prometheus(text)) == 2 * len(odd)
    assert len(by_gitlab(text)) == 2 * len(odd)
    assert set(by_gitlab(text).values()) == {"1", "0"}
