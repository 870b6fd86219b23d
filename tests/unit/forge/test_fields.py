"""A requested value exists and has its type, or an error names its path."""

import pytest

from pytest_opprof.errors import ForgeError
from pytest_opprof.forge.fields import Fields

FIELDS = Fields(
    {"a": {"text": "x", "number": 3, "flag": True, "list": [{"n": 1}], "none": None}}, where="answer"
)


def test_values_are_found_by_their_path() -> None:
    assert FIELDS.text("a", "text") == "x"
    assert FIELDS.number("a", "number") == 3
    assert [item.number("n") for item in FIELDS.items("a", "list")] == [1]
    assert FIELDS.inside("a").text("text") == "x"
    assert FIELDS.has("a", "text")
    assert not FIELDS.has("a", "none")
    assert not FIELDS.has("b", "c")
    assert FIELDS.is_set("a", "flag")
    assert not FIELDS.is_set("a", "number")


def test_missing_values_are_reported_with_their_path() -> None:
    with pytest.raises(ForgeError, match=r"^answer: there is no text at a\.number$"):
        FIELDS.text("a", "number")
    with pytest.raises(ForgeError, match=r"^answer: there is no number at a\.flag$"):
        FIELDS.number("a", "flag")
    with pytest.raises(ForgeError, match=r"^answer: there is no list$"):
        FIELDS.items()
    with pytest.raises(ForgeError, match=r"^answer\.a\.list\[0\]: there is no text at n$"):
        FIELDS.items("a", "list")[0].text("n")


@pytest.mark.parametrize("number", [0, 10**18 - 1])
def test_numbers_have_18_digits_at_most(number: int) -> None:
    assert Fields({"id": number}, where="answer").number("id") == number


@pytest.mark.parametrize("number", [-1, 10**18])
def test_other_numbers_are_refused(number: int) -> None:
    with pytest.raises(ForgeError, match="there is no number at id"):
        Fields({"id": number}, where="answer").number("id")
