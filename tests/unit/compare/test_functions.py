"""Which functions a rise of instructions is told to come from."""

from collections.abc import Mapping

from pytest_opprof.compare.comparison import Change
from pytest_opprof.compare.functions import with_grown_functions
from pytest_opprof.metrics import PYTHON_INSTRUCTIONS
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples

NAME = PYTHON_INSTRUCTIONS.name


def explained(before: Mapping[str, int], after: Mapping[str, int]) -> Change:
    base, head = (Samples.constant(sum(side.values()), steps=1) for side in (before, after))
    change = Change(op=None, metric=NAME, base=base, head=head, verdict=None)
    sides = (TestResult(node_id="t", functions={NAME: side}) for side in (before, after))
    return with_grown_functions(change, *sides)


def test_what_grew_most_is_the_line() -> None:
    found = explained({"a, x.py": 10, "b, x.py": 10}, {"a, x.py": 30, "b, x.py": 11})
    assert found.line is not None
    assert found.line.location == "x.py in a"
    assert found.line.place == "a, x.py"
    assert found.cause == "in a, x.py (+20); b, x.py (+1)"


def test_a_function_that_moved_did_not_grow() -> None:
    found = explained({"a, x.py": 100, "b, x.py": 10}, {"a, y.py": 100, "b, x.py": 30})
    assert found.cause == "in b, x.py (+20)"


def test_a_function_with_another_name_did_not_grow() -> None:
    found = explained({"old, x.py": 100, "b, x.py": 10}, {"new, x.py": 100, "b, x.py": 30})
    assert found.cause == "in b, x.py (+20)"


def test_many_functions_are_counted() -> None:
    found = explained({}, {f"f{number}, x.py": 10 + number for number in range(5)})
    assert found.cause == "in f4, x.py (+14); f3, x.py (+13); f2, x.py (+12); 2 more"


def test_a_fall_comes_from_nowhere() -> None:
    found = explained({"a, x.py": 30}, {"a, x.py": 10})
    assert found.line is None
    assert found.cause == ""
