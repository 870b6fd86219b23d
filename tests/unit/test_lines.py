"""The regressions of `make lines`, and how a session's named lines are read."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.documents.compared import cloning

from benchmarks.adoption.lines import TRIED, Edit, Named, all_edits, holds, named_first, page
from pytest_opprof.compare.document import write_comparison

EDIT = Edit(
    project="einops",
    what="a copy",
    file="model.py",
    old="x",
    new="x.clone()",
    tests=("tests",),
    line="model.py:9 in forward",
    op="aten::clone",
)


@pytest.mark.parametrize("edit", all_edits(), ids=lambda edit: f"{edit.project}: {edit.what}")
def test_each_edit_says_what_must_be_named(edit: Edit) -> None:
    assert edit.project in TRIED
    assert edit.old != edit.new
    assert edit.tests
    # a function is found by its name, a line by the edit's text
    assert edit.op == "python.instructions" or edit.line in edit.new


@pytest.mark.parametrize(
    ("wanted", "is_line", "is_op"),
    [
        (EDIT, True, True),
        (replace(EDIT, line="other"), False, True),
        (replace(EDIT, op="aten::m*"), True, False),
    ],
    ids=["both", "another line", "another op"],
)
def test_the_first_cause_is_compared_with_the_edit(
    tmp_path: Path, wanted: Edit, is_line: bool, is_op: bool
) -> None:
    document = tmp_path / "comparison.json"
    write_comparison(document, cloning(places={"forward, model.py:9": 6}))
    found = named_first(wanted, document)
    assert (found.op, found.is_line, found.is_op) == ("aten::clone", is_line, is_op)


def test_passing_session_named_nothing(tmp_path: Path) -> None:
    nothing = named_first(EDIT, tmp_path / "none.json")
    assert (nothing.place, nothing.is_line, nothing.is_op) == ("nothing", False, False)
    right = Named(place="x.clone() | y", op="aten::clone", is_line=True, is_op=True)
    text = page([(EDIT, nothing), (EDIT, right)])
    assert "Of 2 regressions" in text
    assert "| einops | a copy | `aten::clone` | `x.clone() \\| y` | yes |" in text


@pytest.mark.parametrize(
    ("lines", "ops", "tried", "enough"),
    [(38, 39, 40, True), (37, 40, 40, False), (40, 38, 40, False), (39, 39, 39, False)],
    ids=["just-enough", "lines", "ops", "one-untried"],
)
def test_too_few_that_are_named_rightly_fail(lines: int, ops: int, tried: int, enough: bool) -> None:
    found = [Named(place="x", op="y", is_line=number < lines, is_op=number < ops) for number in range(tried)]
    assert holds(found, tries=40) is enough
