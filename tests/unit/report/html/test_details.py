"""A page's data of one test."""

from support.documents.compared import against, cloning, compared, gone, mixed, named, slower
from support.documents.strategies import simple_run

from pytest_opprof.report.html.data import test_details as details
from pytest_opprof.report.summary import Judged, Summary
from pytest_opprof.results.run import CaptureStats, TreeNode


def details_of(judged: Judged, name: str) -> dict[str, object]:
    summary = Summary.of(judged)
    (test,) = (one for one in summary.tests if one.node_id.endswith(f"::{name}"))
    return details(test, summary, times=None, trends=())


def test_changes_have_both_values_and_totals_come_last() -> None:
    changes = details_of(cloning(places={"forward, model.py:41": 6}), "test_step")["changes"]
    assert isinstance(changes, list)
    assert [change["name"] for change in changes] == ["aten::clone", "aten::copy_", "ops, total"]
    clone = changes[0]
    assert (clone["base"], clone["head"], clone["change"], clone["rise"]) == ("0", "2", "+2", 2)
    assert "model.py:41" in clone["cause"]
    assert all(change["telling"] for change in changes)


def test_cause_has_line_ops_and_command() -> None:
    told = details_of(cloning(places={"forward, model.py:41": 6}), "test_step")
    causes = told["causes"]
    assert isinstance(causes, list)
    (cause,) = causes
    assert cause["title"] == "model.py:41 in forward"
    assert [(row["name"], row["depth"], row["change"]) for row in cause["rows"]] == [
        ("aten::clone", 0, "+2"),
        ("aten::copy_", 1, "+2"),
    ]
    assert cause["advice"].endswith("(OP103)")
    assert told["commands"] == [
        "pytest tests/test_model.py::test_step --opprof-baseline=main",
        'opprof accept tests/test_model.py::test_step --reason "..."',
    ]


def test_missing_test_can_only_be_accepted() -> None:
    accept = 'opprof accept tests/test_model.py::test_gone --reason "..."'
    assert details_of(gone(), "test_gone")["commands"] == [accept]


def test_ab_is_run_again_and_accepted_from_its_file() -> None:
    judged = against("HEAD~3", slower())
    assert details_of(judged, "test_0")["commands"] == [
        "opprof ab 'HEAD~3' tests/test_a.py::test_0",
        'opprof accept --comparison FILE tests/test_a.py::test_0 --reason "..."',
    ]
    assert details_of(judged, "test_1")["commands"] == ["opprof ab 'HEAD~3' tests/test_a.py::test_1"]


def test_limits_are_shown_kept_or_broken() -> None:
    run = simple_run(named("limited", {"aten::mul": 7}, limits={"aten::mul.count": 5, "ops.count": 9}))
    limits = details_of(compared(None, run), "limited")["limits"]
    assert isinstance(limits, list)
    assert {limit["path"]: (limit["measured"], limit["verdict"]) for limit in limits} == {
        "aten::mul.count": ("7", "regressed"),
        "ops.count": ("7", "pass"),
    }


def test_a_side_that_is_missing_is_null() -> None:
    new = details_of(mixed(), "new")
    assert new["base"] is None
    assert new["head"] is not None


def test_each_side_reports_its_losses() -> None:
    lossy = CaptureStats(dropped=12)
    tree = (TreeNode(parent=-1, name="aten::mul", count=1, self_ns=0),)
    run = simple_run(named("test_step", {"aten::mul": 2}, steps=3, capture=lossy, tree=tree))
    head = details_of(compared(None, run), "test_step")["head"]
    assert isinstance(head, dict)
    assert head["lacking"] == [
        "Events not recorded: 12 (they are missing from this table)",
        "Calls that the call tree has no room for: 5",
    ]
