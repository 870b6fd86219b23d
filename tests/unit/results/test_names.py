"""Names in documents."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_opprof.results.names import MAX_NODE_ID, bounded, canonical_node_id, parts_of, trace_stem


@pytest.mark.parametrize(
    ("node_id", "canonical"),
    [
        ("tests/test_a.py::test_x@gpu", "tests/test_a.py::test_x"),
        ("tests/test_a.py::test_x[a@b]@gpu", "tests/test_a.py::test_x[a@b]"),
        ("tests/test_a.py::test_x[a@b]", "tests/test_a.py::test_x[a@b]"),
        ("tests/test_a.py::test_x[a::b@c]", "tests/test_a.py::test_x[a::b@c]"),
        ("dir@2/test_a.py::test_x", "dir@2/test_a.py::test_x"),
        ("dir@2/test_a.py", "dir@2/test_a.py"),
    ],
)
def test_only_the_group_of_xdist_is_stripped(node_id: str, canonical: str) -> None:
    assert canonical_node_id(node_id) == canonical


def test_long_node_ids_stay_apart() -> None:
    one, other = (f"t.py::test[{'x' * 9_000}{end}]" for end in "ab")
    assert canonical_node_id(one) != canonical_node_id(other)
    assert len(canonical_node_id(one)) == MAX_NODE_ID


@given(st.text(max_size=200), st.integers(40, 100))
def test_bounded_text_fits(text: str, length: int) -> None:
    cut = bounded(text, length=length)
    assert len(cut) <= length
    assert (cut == text) is (len(text) <= length)


@pytest.mark.parametrize(
    ("node_id", "parts"),
    [
        ("t.py::TestA::TestB::test_x", ["t.py", "TestA", "TestB", "test_x"]),
        ("t.py::test_x[a::b[c]::d]", ["t.py", "test_x[a::b[c]::d]"]),
        ("[id]/t.py::TestA::test_x[a::b]", ["[id]/t.py", "TestA", "test_x[a::b]"]),
        ("README.md", ["README.md"]),
    ],
)
def test_parameters_are_no_classes(node_id: str, parts: list[str]) -> None:
    assert parts_of(node_id) == parts


def test_trace_files_are_named_by_the_test_and_a_digest_of_its_id() -> None:
    stems = {trace_stem(f"{file}.py::TestA::test_b[x/y]") for file in ("one", "other")}
    assert len(stems) == 2
    assert all(re.fullmatch(r"test_b_x_y_-[0-9a-f]{12}", stem) for stem in stems)
    assert trace_stem("t.py::test_op[aten::add]").startswith("test_op_aten_add_-")
