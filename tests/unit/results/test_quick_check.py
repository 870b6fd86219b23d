"""The compiled schema and jsonschema give one answer."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.documents.strategies import runs

from pytest_opprof.results.document import run_to_document
from pytest_opprof.results.quick_check import QuickCheck
from pytest_opprof.results.run import Run
from pytest_opprof.results.schema import Contract, _quick_check, _validator

values = (
    st.none()
    | st.booleans()
    | st.floats(allow_nan=False)
    | st.sampled_from(
        [-1, 0, 1, 2**53, 2**64, "", "passed", "opprof-run", "x" * 5000, "a.b", [], {}, [1], [-1]]
    )
    | st.dictionaries(st.sampled_from(["sum", "min", "max", "wait", "id"]), st.integers(-1, 9))
)


def _places(part: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in a document."""
    inner: Any = ()
    if isinstance(part, dict):
        inner = part.items()
    elif isinstance(part, list):
        inner = enumerate(part)
    return [path, *(place for key, value in inner for place in _places(value, (*path, key)))]


@given(run=runs(), data=st.data())
def test_one_change_gets_one_answer(run: Run, data: st.DataObject) -> None:
    document = json.loads(json.dumps(run_to_document(run)))
    place = data.draw(st.sampled_from(_places(document)))
    changed: Any = copy.deepcopy(document)
    if place:
        part = changed
        for key in place[:-1]:
            part = part[key]
        action = data.draw(st.sampled_from(["replace", "delete", "add"]))
        if action == "delete":
            del part[place[-1]]
        elif action == "add" and isinstance(part, dict):
            part["surprise"] = data.draw(values)
        else:
            part[place[-1]] = data.draw(values)
    else:
        changed = data.draw(values)
    told = _validator(Contract.RUN).is_valid(changed)
    assert _quick_check(Contract.RUN).accepts(changed) is told


@pytest.mark.parametrize(
    "rule",
    [
        {"uniqueItems": True},
        {"type": "number"},
        {"enum": [1]},
        {"enum": ["a"], "minimum": 1},
    ],
    ids=lambda rule: next(iter(rule)),
)
def test_unknown_rules_are_not_skipped(rule: dict[str, Any]) -> None:
    with pytest.raises((AssertionError, KeyError)):
        QuickCheck({"$id": "x", **rule}, others={})


@pytest.mark.parametrize(("value", "is_accepted"), [("a", True), ("b", False), (None, False)])
def test_every_rule_of_a_schema_holds(value: object, is_accepted: bool) -> None:
    check = QuickCheck({"$id": "x", "type": "string", "enum": ["a", None]}, others={})
    assert check.accepts(value) is is_accepted
