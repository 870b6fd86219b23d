"""A metric over time: its values, its changes, and the selection of a test."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.documents.histories import log_of, record_on_day, run_on_day
from support.documents.strategies import simple_test

from pytest_opprof.errors import UsageError
from pytest_opprof.history.log import HistoryLog
from pytest_opprof.history.reader import HistoryReader, Results
from pytest_opprof.history.record import record_of
from pytest_opprof.history.trend import find_test, is_change, trend_of, values_of, wanted_metrics
from pytest_opprof.metrics import parse_path
from pytest_opprof.results.run import Environment
from pytest_opprof.results.samples import Samples

TEST = "t.py::test_0"


def results_of(log: HistoryLog) -> Results:
    reader = HistoryReader(log)
    return reader.results(TEST)


def test_exact_change_is_where_the_value_differs(tmp_path: Path) -> None:
    results = results_of(log_of(tmp_path, [2, 2, 3, 3, 2]))
    trend = trend_of(TEST, parse_path("aten::mul.count", where="METRIC"), results)
    assert [point.samples and point.samples.low for point in trend.points()] == [2, 2, 3, 3, 2]
    assert [point.is_change for point in trend.points()] == [False, False, True, False, True]
    assert trend.changes == {2, 4}
    assert trend.note == ""


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("aten::mul.count", 4),
        ("aten::*.count", 4),
        ("*.count", 5),
        ("aten::absent.count", 0),
        ("ops.count", 4),
        ("ranges.count", 1),
        ("total.self_cpu_time_total", 5_000),
        ("flops.total", None),
        ("aten::mul.flops", None),
        ("aten::mul.kernels", None),
    ],
)
def test_path_selects_a_value(tmp_path: Path, path: str, value: int | None) -> None:
    (found,) = values_of(results_of(log_of(tmp_path, [4])), parse_path(path, where="METRIC"))
    assert (found and found.low) == value


def test_absent_op_is_unknown_where_rows_were_left_out(tmp_path: Path) -> None:
    log = HistoryLog(tmp_path / "history")
    partial = simple_test({"aten::mul": 1}, node_id=TEST, ops_omitted=3)
    runs = (run_on_day(1), replace(run_on_day(2), tests=(partial,)))
    log.append(record_of(run, committed=None) for run in runs)
    found = values_of(results_of(log), parse_path("aten::add.count", where="METRIC"))
    assert [samples and samples.low for samples in found] == [0, None]


def test_change_names_other_changes(tmp_path: Path) -> None:
    log = HistoryLog(tmp_path / "history")
    environments = [
        Environment(fingerprint={"torch": version, "cpu_model": version}) for version in ("2.12", "2.13")
    ]
    log.append(record_on_day(day, mul=2 + day, environment=each) for day, each in enumerate(environments))
    trend = trend_of(TEST, parse_path("ops.count", where="METRIC"), results_of(log))
    assert [point.because for point in trend.points()] == [(), ("torch 2.12 -> 2.13",)]


def test_default_metrics_are_counts_and_times(tmp_path: Path) -> None:
    results = results_of(log_of(tmp_path, [1]))
    assert [str(path) for path in wanted_metrics(None, results)] == ["ops.count", "total.self_cpu_time_total"]
    assert [str(path) for path in wanted_metrics(None, Results([].__getitem__, [], []))] == [
        "ranges.count",
        "total.self_cpu_time_total",
    ]


@pytest.mark.parametrize(
    ("metric", "told"),
    [
        ("aten::mul.self_cpu_time_total", "the history has times only of whole tests"),
        ("ops.cuont", "did you mean 'ops.count'"),
    ],
)
def test_unstored_metric_is_reported(metric: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        wanted_metrics(metric, Results([].__getitem__, [], []))


TESTS = ["a.py::test_loop", "a.py::test_loop_long", "b.py::test_encoder[8]"]


@pytest.mark.parametrize(
    ("text", "test"),
    [
        ("a.py::test_loop", "a.py::test_loop"),
        ("test_loop", "a.py::test_loop"),
        ("long", "a.py::test_loop_long"),
        ("encoder", "b.py::test_encoder[8]"),
    ],
)
def test_test_is_found_by_a_part_of_its_id(text: str, test: str) -> None:
    assert find_test(text, TESTS) == test


@pytest.mark.parametrize(
    ("text", "tests", "told"),
    [
        (
            "test_",
            TESTS,
            r"'test_' matches a.py::test_loop, a.py::test_loop_long, b.py::test_encoder\[8\]: give",
        ),
        ("test_lop", TESTS, "did you mean 'a.py::test_loop'"),
        ("nothing like it", TESTS, "it has 3 tests, such as 'a.py::test_loop'"),
        ("test_x", [], "the history is empty"),
        ("t", [f"test_{number}" for number in range(9)], "test_4 and 4 more: give a longer part"),
    ],
)
def test_unknown_test_is_reported(text: str, tests: list[str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        find_test(text, tests)


def test_distinguishing_views_from_ops_is_not_a_change(tmp_path: Path) -> None:
    """Before it: 5 ops, 2 of them views; then 3 and 2; then one real op more."""
    found = results_of(log_of(tmp_path, [5, 3, 4]))
    older, *newer = found.counts
    views = {"views.count": Samples.constant(2, steps=older.steps)}
    counts = [older, *(replace(one, totals={**one.totals, **views}) for one in newer)]
    results = Results(found.head_of, counts, found.measured)
    trend = trend_of(TEST, parse_path("ops.count", where="METRIC"), results)
    assert [point.is_change for point in trend.points()] == [False, False, True]


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ((2, 2), (2, 2), False),
        ((2, 2), (3, 3), True),
        ((2, 2), (2, 3), True),
        ((142, 191), (136, 198), False),
        ((142, 191), (191, 240), False),
        ((142, 191), (192, 240), True),
    ],
)
def test_varying_count_changes_if_no_step_overlaps(
    before: tuple[int, int], after: tuple[int, int], changed: bool
) -> None:
    was, now = (Samples(steps=3, total=low + 2 * high, low=low, high=high) for low, high in (before, after))
    assert is_change(was, now) is changed
    assert is_change(now, was) is changed
