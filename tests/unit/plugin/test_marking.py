"""Which tests a line of ``opprof_mark`` chooses."""

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_opprof.plugin.marking import parse_mark


@pytest.mark.parametrize("line", ["tests/test_a.py::test_it", "tests/test_a.py", "*::test_it", "tests/*_it"])
def test_a_tests_group_in_xdist_is_no_part_of_its_name(line: str) -> None:
    # xdist's --dist=loadgroup adds it, with pytest before 9.2.
    item: Any = SimpleNamespace(nodeid="tests/test_a.py::test_it@gpu")
    assert parse_mark(line).chooses(item)
