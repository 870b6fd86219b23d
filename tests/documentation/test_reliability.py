"""docs/reliability.md names a test for each fault, and each of them exists and runs."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAD = ["fault", "what happens", "the test that shows it"]


def rows() -> list[list[str]]:
    """The cells of each row of the tables of faults."""
    found, is_of_faults = [], False
    for line in (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            is_of_faults = False
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if is_of_faults and not line.startswith("|---"):
            found.append(cells)
        is_of_faults |= cells == HEAD
    return found


def shown_by(cell: str) -> list[str]:
    """The tests that a cell names; the cell holds nothing else."""
    tests = re.findall(r"`([^`]+)`", cell)
    assert ", ".join(f"`{test}`" for test in tests) == cell
    return tests


@cache
def python_tests(path: Path) -> set[str]:
    """The functions that pytest collects from a file."""
    assert path.name.startswith("test_"), path
    module = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {function.name for function in functions if function.name.startswith("test_")}


@cache
def c_tests(path: Path) -> set[str]:
    """The functions that a C test runs, if CMake builds it."""
    listed = (ROOT / "native" / "tests" / "CMakeLists.txt").read_text(encoding="utf-8")
    units = re.findall(r"(?:set\(units|list\(APPEND units)\s([^)]*)\)", listed)
    if path.stem.removeprefix("test_") not in " ".join(units).split():
        return set()
    return set(re.findall(r"^ +RUN\((\w+)\);$", path.read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_each_fault_names_a_test_that_runs(row: list[str]) -> None:
    fault, what_happens, shown = row
    assert fault
    assert what_happens
    for test in shown_by(shown):
        name, _, function = test.partition("::")
        path = ROOT / name
        assert path.is_file(), name
        assert function in (c_tests(path) if path.suffix == ".c" else python_tests(path)), test


def test_every_fault_has_a_row_of_its_own() -> None:
    faults = [row[0] for row in rows()]
    assert len(faults) == len(set(faults))
    assert len(faults) > 40


@pytest.mark.parametrize("cell", ["nothing", "`tests/unit/test_units.py`::test_a", "`a` and `b`", "`a` `b`"])
def test_plain_words_are_not_tests(cell: str) -> None:
    with pytest.raises(AssertionError):
        shown_by(cell)
