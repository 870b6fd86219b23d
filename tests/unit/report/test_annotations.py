"""Workflow commands as GitHub's runner reads them."""

from dataclasses import replace

from support.documents.compared import cloning, mixed, regressions, slower, without_a_number
from support.forges.workflow_commands import commands

from pytest_opprof.compare.comparison import Comparison
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.report.annotations import Folders, github_annotations


def test_a_regression_is_shown_at_the_line_that_calls_the_new_op() -> None:
    (found,) = commands(github_annotations(cloning(places={"forward, src/model.py:41": 6})))
    assert found.kind == "error"
    assert found.properties == {
        "file": "src/model.py",
        "line": "41",
        "title": "opprof: REGRESSED: tests/test_model.py::test_step",
    }
    assert found.message.splitlines() == [
        "cause 1, 1 test: src/model.py:41 in forward: aten::clone +2 a step",
        "test_step",
        'intended? opprof accept tests/test_model.py::test_step --reason "..."',
    ]


def test_regression_without_stacks_is_shown_at_the_test() -> None:
    (found,) = commands(github_annotations(cloning()))
    assert found.properties["file"] == "tests/test_model.py"
    assert "line" not in found.properties


def test_function_without_a_line_has_its_file_alone() -> None:
    comparison = without_a_number(cloning(places={"forward, src/model.py:41": 6}))
    (found,) = commands(github_annotations(comparison))
    assert found.properties["file"] == "src/model.py"
    assert "line" not in found.properties


def test_paths_begin_at_the_top_of_the_repository() -> None:
    folders = Folders(start="packages/a/tests", root="packages/a")
    of_line = cloning(places={"forward, src/model.py:41": 6})
    of_install = cloning(places={"forward, /opt/model.py:41": 6})
    for comparison, file in (
        (of_line, "packages/a/tests/src/model.py"),
        (of_install, "/opt/model.py"),
        (cloning(), "packages/a/tests/test_model.py"),
    ):
        (found,) = commands(github_annotations(comparison, folders=folders))
        assert found.properties["file"] == file
    files = {one.properties["file"] for one in commands(github_annotations(mixed(), folders=folders))}
    assert files == {"packages/a/tests/test_model.py"}


def test_unjudgeable_tests_are_a_warning() -> None:
    found = commands(github_annotations(mixed()))
    assert [(one.kind, one.properties["title"].split(": ")[1]) for one in found] == [
        ("error", "REGRESSED"),
        ("error", "REGRESSED"),
        ("error", "ERROR"),
        ("warning", "INCONCLUSIVE"),
    ]


def test_tests_of_a_cause_share_an_annotation() -> None:
    (found,) = commands(github_annotations(regressions(25)))
    assert found.properties["title"] == "opprof: REGRESSED: 25 tests"
    assert found.message.splitlines() == [
        "cause 1, 25 tests: aten::item0 +1 a step",
        "test_0, test_1, test_2 and 22 more",
        'intended? opprof accept --cause 1 --reason "..."',
    ]


def test_tests_without_a_verdict_share_an_annotation_for_each_reason() -> None:
    comparison = regressions(3)
    reasons = ("other torch", "events were dropped", "other torch")
    tests = [
        replace(test, verdict=Verdict.INCONCLUSIVE, reason=reason)
        for test, reason in zip(comparison.tests, reasons, strict=True)
    ]
    found = commands(github_annotations(replace(comparison, tests=tuple(tests))))
    assert [(one.kind, one.message.splitlines()) for one in found] == [
        ("warning", ["other torch", "test_0, test_2"]),
        ("warning", ["events were dropped", "test_1"]),
    ]


def test_a_slower_test_is_shown_with_its_op() -> None:
    found = commands(github_annotations(slower()))
    assert "intended? opprof accept --comparison FILE tests/test_a.py::test_0" in found[0].message
    assert [one.message.splitlines()[0].partition(":")[0] for one in found] == ["cause 1, 1 test", "aten"]
    assert "; slower by " in found[1].message


def without_a_common_cause(many: int) -> Comparison:
    """N regressed tests, each in its own op."""
    comparison = regressions(many)
    tests = []
    for at, test in enumerate(comparison.tests):
        changes = tuple(
            replace(one, op=f"aten::item{at}") if one.op is not None else one for one in test.changes
        )
        tests.append(replace(test, changes=changes))
    return replace(comparison, tests=tuple(tests))


def test_more_than_github_shows_are_counted_in_the_last_one() -> None:
    assert len(commands(github_annotations(without_a_common_cause(10)))) == 10
    found = commands(github_annotations(without_a_common_cause(25)))
    assert len(found) == 10
    assert found[-1].message.startswith("16 more causes (16 tests): ")
