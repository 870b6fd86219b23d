"""Inputs of torch ops, decoded from the observer's words."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import pytest

from pytest_opprof.capture.inputs import Inputs, decode_inputs, decode_text

OTHER, TENSOR, WIDE, UNDEFINED, TENSOR_LIST, INT, DOUBLE, BOOL = range(8)
INT_LIST, DOUBLE_LIST, BOOL_LIST, TEXT, NONE, CUT, UNSTRIDED = range(8, 15)
FLOAT, LONG = 6, 4


def token(tag: int, *, dtype: int = 0, length: int = 0) -> int:
    return tag | dtype << 8 | length << 16


def words_of(layout: str, *values: float) -> list[int]:
    raw = struct.pack(f"={layout}", *values)
    return list(struct.unpack(f"={len(raw) // 4}I", raw))


def block(words: Iterable[int], *, kind: int = 2) -> memoryview[int]:
    """An argument block with a forward thread of 0, followed by other blocks."""
    payload = [0, 0, *words]
    raw = struct.pack(f"={len(payload) + 3}I", kind | len(payload) << 8, *payload, 7, 7)
    return memoryview(raw).cast("I")


def decoded(*words: int) -> Inputs:
    inputs = decode_inputs(block(words))
    assert inputs is not None
    return inputs


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param([token(OTHER)], ([], [], "", None), id="other"),
        pytest.param([token(NONE)], ([], [], "", None), id="none"),
        pytest.param([token(UNDEFINED)], ([], [], "", None), id="undefined"),
        pytest.param(
            [token(TENSOR, dtype=FLOAT, length=2), 2, 3, 3, 1], ([2, 3], [3, 1], "float", None), id="tensor"
        ),
        pytest.param([token(TENSOR, dtype=LONG)], ([], [], "long int", None), id="tensor-without-dimensions"),
        pytest.param([token(TENSOR, dtype=255, length=1), 2, 1], ([2], [1], "", None), id="unknown-dtype"),
        pytest.param(
            [token(WIDE, dtype=FLOAT, length=1), *words_of("qq", 2**33, -1)],
            ([2**33], [-1], "float", None),
            id="wide-tensor",
        ),
        pytest.param(
            [token(UNSTRIDED, dtype=FLOAT, length=2), *words_of("qq", 2, 2**40)],
            ([2, 2**40], [], "float", None),
            id="sparse-tensor",
        ),
        pytest.param([token(INT), *words_of("q", -(2**62))], ([], [], "Scalar", -(2**62)), id="integer"),
        pytest.param([token(DOUBLE), *words_of("d", 0.1)], ([], [], "Scalar", 0.1), id="double"),
        pytest.param([token(BOOL, length=1)], ([], [], "Scalar", True), id="true"),
        pytest.param([token(BOOL)], ([], [], "Scalar", False), id="false"),
        pytest.param(
            [token(INT_LIST, length=2), *words_of("qq", 1, -2)],
            ([], [], "ScalarList", [1, -2]),
            id="integers",
        ),
        pytest.param([token(INT_LIST)], ([], [], "ScalarList", []), id="no-integers"),
        pytest.param(
            [token(DOUBLE_LIST, length=2), *words_of("dd", 1, 2.5)],
            ([], [], "ScalarList", [1.0, 2.5]),
            id="doubles",
        ),
        pytest.param(
            [token(BOOL_LIST, length=3), 1, 0, 1],
            ([], [], "ScalarList", [True, False, True]),
            id="booleans",
        ),
        pytest.param(
            [token(TEXT, length=5), *struct.unpack("=2I", b"floor\0\0\0")], ([], [], "", "floor"), id="text"
        ),
    ],
)
def test_each_kind_is_decoded(words: list[int], expected: tuple[list[int], list[int], str, object]) -> None:
    # Between two others, so that a wrong length shows.
    inputs = decoded(token(BOOL), *words, token(BOOL, length=1))
    assert (inputs.concrete[0], inputs.concrete[2]) == (False, True)
    assert len(inputs.shapes) == 3
    found = (inputs.shapes[1], inputs.strides[1], inputs.dtypes[1], inputs.concrete[1])
    assert found == expected


def test_members_of_a_list_are_nested() -> None:
    inputs = decoded(
        token(TENSOR_LIST, length=3),
        *[token(TENSOR, dtype=FLOAT, length=1), 4, 1],
        token(UNDEFINED),
        *[token(UNSTRIDED, dtype=FLOAT, length=1), *words_of("q", 5)],
        token(INT),
        *words_of("q", 1),
    )
    assert inputs.shapes == [[[4], [], [5]], []]
    assert inputs.strides == [[[1], [], []], []]
    assert inputs.dtypes == ["TensorList", "Scalar"]
    assert inputs.concrete == [None, 1]


def test_oversized_inputs_are_left_out() -> None:
    cut = token(CUT)
    assert decoded(token(BOOL), cut).concrete == [False]
    inputs = decoded(token(TENSOR_LIST, length=3), token(TENSOR, dtype=FLOAT, length=1), 4, 1, cut)
    assert inputs.shapes == [[[4]]]


def test_block_without_inputs_has_none() -> None:
    assert decode_inputs(block([])) is None


def test_text_is_not_inputs() -> None:
    text = memoryview(struct.pack("=2I8s", 1 | 3 << 8, 5, b"a\xff\0bc")).cast("I")
    assert decode_inputs(text) is None
    assert decode_text(text) == "a\ufffd\0bc"
    assert decode_text(block([])) is None
