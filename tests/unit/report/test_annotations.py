"""Workflow commands as GitHub's runner reads them."""

from compared import cloning, mixed, regressions
from workflow_commands import commands

from pytest_opprof.report.annotations import github_annotations


def test_a_regression_is_shown_at_the_line_that_calls_the_new_op() -> None:
    (found,) = commands(github_annotations(cloning(places={"forward, src/model.py:41": 6})))
    assert found.kind == "error"
    assert found.properties == {
        "file": "src/model.py",
        "line": "41",
        "title": "opprof: REGRESSED: tests/test_model.py::test_step",
    }
    assert found.message.startswith("aten::clone count 0 -> 2 (+2): new in forward, src/model.py:41; ")
    assert found.message.endswith("(same in 3 of 3 steps, certified in 2 processes)")


def test_without_stacks_it_is_shown_at_the_test() -> None:
    (found,) = commands(github_annotations(cloning()))
    assert found.properties["file"] == "tests/test_model.py"
    assert "line" not in found.properties


def test_what_cannot_be_judged_is_a_warning() -> None:
    found = commands(github_annotations(mixed()))
    assert [(one.kind, one.properties["title"].split(": ")[1]) for one in found] == [
        ("error", "ERROR"),
        ("error", "REGRESSED"),
        ("error", "REGRESSED"),
        ("warning", "INCONCLUSIVE"),
    ]


def test_more_than_github_shows_are_counted_in_the_last_one() -> None:
    assert len(commands(github_annotations(regressions(10)))) == 10
    found = commands(github_annotations(regressions(25)))
    assert len(found) == 10
    assert found[-1].message.startswith("16 more tests fail: ")
