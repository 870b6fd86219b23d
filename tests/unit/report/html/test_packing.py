"""Data in a page."""

import base64
import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_opprof.report.html.packing import columns, packed_json, script_json

samples = st.one_of(
    st.integers(0, 99),
    st.lists(st.integers(0, 99), min_size=2, max_size=4),
    st.fixed_dictionaries({"sum": st.integers(0, 99), "min": st.integers(0, 9), "max": st.integers(0, 99)}),
)
rows = st.lists(
    st.fixed_dictionaries(
        {"name": st.text(max_size=5)},
        optional={
            "count": samples,
            "kind": st.sampled_from(["op", "call"]),
            "places": st.just([{"source": "a"}]),
        },
    ),
    max_size=6,
)


@given(
    st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_script_json_has_no_html_characters(value: Any) -> None:
    text = script_json(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == value


def test_non_json_values_are_refused() -> None:
    for write in (script_json, packed_json):
        with pytest.raises(ValueError, match="not JSON compliant"):
            write({"value": float("nan")})


def test_packing_is_lossless_and_deterministic() -> None:
    value = {"name": "</script>\ud800", "values": list(range(1000))}
    text = packed_json(value)
    assert json.loads(gzip.decompress(base64.b64decode(json.loads(text)))) == value
    assert packed_json(value) == text
    assert not set("<>&") & set(text)


@given(rows)
def test_columns_hold_the_rows(rows: list[dict[str, Any]]) -> None:
    assert _rows_of(columns(rows)) == rows


def _rows_of(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The unpacking of the page's script, in Python."""
    return [
        {
            name: value
            for name, column in found["columns"].items()
            if (value := _value(column, at)) is not None
        }
        for at in range(found["length"])
    ]


def _value(column: Any, at: int) -> Any:
    if isinstance(column, list):
        return column[at]
    if "words" in column:
        return column["words"][column["at"][at]]
    if column["min"][at] is None:
        return column["sum"][at]
    return {part: column[part][at] for part in ("sum", "min", "max")}
