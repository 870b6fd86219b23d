"""Baseline tests under their new names."""

import pytest
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.compare.renamed_tests import parse_renames, with_new_names
from pytest_opprof.errors import UsageError


def names(run_of: list[str], *renames: str) -> tuple[list[str], tuple[str, ...]]:
    base = simple_run(*(simple_test({"aten::mul": 1}, node_id=name) for name in run_of), name="main")
    run, notes = with_new_names(base, parse_renames(renames, where="opprof_rename"))
    return [test.node_id for test in run.tests], notes


@pytest.mark.parametrize(
    ("rename", "old", "new"),
    [
        ("a.py::test_x -> b.py::test_y", "a.py::test_x", "b.py::test_y"),
        ("a.py::test_x->b.py::test_y", "a.py::test_x[1]", "b.py::test_y[1]"),
        ("a.py::TestX -> a.py::TestY", "a.py::TestX::test_x", "a.py::TestY::test_x"),
        ("a.py -> b/c.py", "a.py::test_x[p]", "b/c.py::test_x[p]"),
        ("a/ -> b/", "a/c.py::test_x", "b/c.py::test_x"),
        ("a.py::test_x[1] -> a.py::test_x[one]", "a.py::test_x[1]", "a.py::test_x[one]"),
        ("a.py::test_x[ij->ji]->a.py::test_x[a -> b]", "a.py::test_x[ij->ji]", "a.py::test_x[a -> b]"),
    ],
    ids=["test", "function", "class", "file", "folder", "parameters", "arrows"],
)
def test_a_renaming_moves_all_that_it_names(rename: str, old: str, new: str) -> None:
    found, notes = names([old, "z.py::test_z"], rename)
    assert found == [new, "z.py::test_z"]
    (note,) = notes
    assert note.startswith("1 test of main compared under another name: ")


@pytest.mark.parametrize("other", ["a.py::test_xy", "aa.py::test_x", "a.pyx::test_x", "b.py::a.py::test_x"])
def test_a_name_that_begins_alike_is_another(other: str) -> None:
    assert names([other], "a.py::test_x -> c.py::test_x", "a -> b")[0] == [other]


def test_a_test_under_the_new_name_stays() -> None:
    found, notes = names(["a.py::test_x", "b.py::test_x"], "a.py -> b.py")
    assert found == ["a.py::test_x", "b.py::test_x"]
    assert notes == (
        "main has no test to rename by 'a.py -> b.py', or the new name is taken: remove this rename",
    )


def test_two_tests_do_not_become_one() -> None:
    found, _ = names(["a.py::test_x", "b.py::test_x"], "a.py -> c.py", "b.py -> c.py")
    assert found == ["c.py::test_x", "b.py::test_x"]


@pytest.mark.parametrize(
    ("renames", "expected"),
    [
        (["t[0] -> t[1]", "t[1] -> t[2]"], ["t[1]", "t[2]", "t[3]"]),
        (["t[0] -> t[1]", "t[1] -> t[0]"], ["t[1]", "t[0]", "t[3]"]),
        (["t[0] -> t[1]", "t[1] -> t[3]"], ["t[0]", "t[1]", "t[3]"]),
    ],
    ids=["chain", "swap", "blocked chain"],
)
def test_a_name_that_another_test_leaves_is_free(renames: list[str], expected: list[str]) -> None:
    assert names(["t[0]", "t[1]", "t[3]"], *renames)[0] == expected


@pytest.mark.parametrize("text", ["a.py", "a.py ->", "-> b.py", "a -> b -> c", ""])
def test_renaming_needs_two_sides(text: str) -> None:
    with pytest.raises(UsageError, match=r"opprof_rename: '.*' is not a rename: write it like"):
        parse_renames([text], where="opprof_rename")
