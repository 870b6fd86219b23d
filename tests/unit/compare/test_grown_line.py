"""The line that makes functions run more, by the calls of functions on both sides."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_opprof.baselines.edited_file import EditedFile
from pytest_opprof.compare.comparison import CallLine, Change
from pytest_opprof.compare.functions import with_grown_functions
from pytest_opprof.compare.grown_line import GrownLines
from pytest_opprof.metrics import PYTHON_INSTRUCTIONS
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples

NAME = PYTHON_INSTRUCTIONS.name
SHOP = """\
class Shop:
    def __init__(self, steps=3):
        self.steps = steps
        self.name = "shop"

    def sell(self, items):
        prices = [self.price(item) for item in items]
        self.check(items)
        return self.total(prices)

    @cache
    def price(self, item):
        return self.look_up(item)

    def look_up(self, item):
        return item

    def check(self, items):
        for item in items:
            self.look_up(item)

    def total(self, prices):
        for step in range(self.steps):
            prices.sort()
        return sum(prices)
"""
LINES = SHOP.splitlines()
Calls = Mapping[str, Mapping[str, int]]


def at(text: str) -> int:
    """The number of the first line with this text."""
    return next(number for number, line in enumerate(LINES, start=1) if text in line)


def named(name: str) -> str:
    return f"Shop.{name}, shop.py"


def place(name: str, text: str) -> str:
    return f"{named(name)}:{at(text)}"


def side(instructions: Mapping[str, int], calls: Calls) -> TestResult:
    places = {one for called_from in calls.values() for one in called_from}
    texts = {one: LINES[int(one.rpartition(":")[2]) - 1].strip() for one in places}
    return TestResult(node_id="t", functions={NAME: instructions}, calls=calls, lines=texts)


TEST = "test_it, test_shop.py:1"
CALLS = {
    named("sell"): {TEST: 1},
    named("price"): {place("sell", "prices = ["): 10},
    named("look_up"): {place("price", "return self.look_up"): 10},
    named("total"): {place("sell", "return self.total"): 1},
}
COUNTS = {named("sell"): 50, named("price"): 100, named("look_up"): 100, named("total"): 60}


@pytest.fixture
def found(tmp_path: Path) -> "Finder":
    return Finder(tmp_path)


class Finder:
    """Finds the line in a head that has other counts and calls, and some edited lines."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "shop.py"
        self._path.write_text(SHOP)

    def __call__(
        self,
        counts: Mapping[str, int],
        calls: Calls,
        *edited: str,
        new: str = "",
        decorated: Collection[str] = (),
    ) -> CallLine | None:
        lines = self.lines(counts, calls, *edited, new=new, decorated=decorated)
        risen = [(name, count - COUNTS.get(name, 0)) for name, count in counts.items()]
        return lines.line_of([item for item in risen if item[1] > 0], NAME)

    def lines(
        self,
        counts: Mapping[str, int],
        calls: Calls,
        *edited: str,
        new: str = "",
        decorated: Collection[str] = (),
    ) -> GrownLines:
        numbers = frozenset(map(at, edited))
        edited_file = EditedFile(
            self._path, lines=numbers, new=frozenset({new} - {""}), decorated=frozenset(decorated)
        )
        edits = {"shop.py": edited_file} if edited or decorated else {}
        return GrownLines(side(COUNTS, CALLS), side({**COUNTS, **counts}, {**CALLS, **calls}), edits)


CHECKED = {
    named("look_up"): {**CALLS[named("look_up")], place("check", "self.look_up(item)"): 10},
    named("check"): {place("sell", "self.check"): 1},
}


def test_a_new_call_is_named_though_its_callee_was_edited_too(found: Finder) -> None:
    line = found({named("look_up"): 200, named("check"): 40}, CHECKED, "self.check(items)", "return item")
    assert line is not None
    assert (line.place, line.is_edited, line.text) == (place("sell", "self.check"), True, "self.check(items)")


def test_the_code_of_a_new_function_is_named(found: Finder) -> None:
    edited = ("self.check(items)", "for item in items:", "self.look_up(item)")
    line = found({named("look_up"): 200, named("check"): 40}, CHECKED, *edited, new="Shop.check")
    assert line is not None
    assert line.place == place("check", "self.look_up(item)")


def test_a_line_that_calls_more_is_named_without_an_edit(found: Finder) -> None:
    calls = {name: {one: 3 * count for one, count in places.items()} for name, places in CALLS.items()}
    more = {name: calls[name] for name in (named("price"), named("look_up"))}
    line = found({named("price"): 300, named("look_up"): 300}, more)
    assert line is not None
    assert (line.place, line.is_edited) == (place("sell", "prices = ["), False)


@pytest.mark.parametrize(
    ("edited", "expected"), [((), "def price"), (("@cache",), "@cache")], ids=["lost", "changed"]
)
def test_a_cache_that_keeps_less_is_named(found: Finder, edited: tuple[str, ...], expected: str) -> None:
    calls = {name: {one: 3 * count for one, count in places.items()} for name, places in CALLS.items()}
    more = {name: calls[name] for name in (named("price"), named("look_up"))}
    line = found({named("look_up"): 300}, more, *edited, decorated=["Shop.price"])
    assert line is not None
    assert (line.number, line.text, line.is_edited) == (at(expected), LINES[at(expected) - 1].strip(), True)
    # An edited line that calls it more often is likelier.
    line = found({named("look_up"): 300}, more, "prices = [", *edited, decorated=["Shop.price"])
    assert line is not None
    assert line.place == place("sell", "prices = [")


def test_a_function_that_does_more_in_each_call_has_its_own_edit(found: Finder) -> None:
    line = found({named("look_up"): 900}, {}, "return item", "self.check(items)")
    assert line is not None
    assert line.place == place("look_up", "return item")


@pytest.mark.parametrize(
    ("rises", "expected"),
    [
        ((100, 900), place("sell", "prices = [")),
        ((500, 400), place("total", "prices.sort")),
        ((400, 300, 300), f"perhaps {place('total', 'prices.sort')}"),
    ],
    ids=["a few percent", "most", "less than half"],
)
def test_an_edit_is_to_blame_for_most_of_the_rise(
    found: Finder, rises: tuple[int, ...], expected: str
) -> None:
    calls = {
        named("price"): {place("sell", "prices = ["): 90},
        named("look_up"): {**CALLS[named("look_up")], place("check", "self.look_up(item)"): 90},
    }
    names = ("total", "price", "look_up")[: len(rises)]
    counts = {named(name): COUNTS.get(named(name), 0) + rise for name, rise in zip(names, rises, strict=True)}
    line = found(counts, calls, "prices.sort", "return item")
    assert line is not None
    assert f"{'' if line.is_certain else 'perhaps '}{line.place}" == expected


@pytest.mark.parametrize(
    ("edited", "expected"),
    [(["def __init__"], "def __init__"), (["self.steps = steps", "self.name"], "self.steps = steps")],
    ids=["a default", "two attributes"],
)
def test_an_object_that_is_made_otherwise_is_named(found: Finder, edited: list[str], expected: str) -> None:
    line = found({named("total"): 900}, {}, *edited)
    assert line is not None
    assert (line.place, line.is_edited) == (place("__init__", expected), True)


def test_a_function_that_only_lost_statements_is_named(tmp_path: Path) -> None:
    Finder(tmp_path)
    edits = {
        "shop.py": EditedFile(
            tmp_path / "shop.py", lines=frozenset({at("prices = [")}), cut=frozenset({"Shop.total"})
        )
    }
    grown = {**COUNTS, named("total"): 900}
    lines = GrownLines(side(COUNTS, CALLS), side(grown, CALLS), edits)
    line = lines.line_of([(named("total"), 840)], NAME)
    assert line is not None
    assert line.place == place("total", "def total")


REWRITTEN = """\
LIMITS = (1, 2, 3)
def run():
    total = 0
    for limit in LIMITS:
        size = work(limit)
        total += size
    return total
"""


@pytest.mark.parametrize(
    ("before", "expected"),
    [("total += work(limit)", "<module>, run.py:1"), ("total += work(more(limit))", "run, run.py:5")],
    ids=["with the same calls", "with other calls"],
)
def test_a_line_that_was_rewritten_is_no_likelier_than_a_constant(
    tmp_path: Path, before: str, expected: str
) -> None:
    (tmp_path / "run.py").write_text(REWRITTEN)
    edits = {"run.py": EditedFile(tmp_path / "run.py", lines=frozenset({1, 5, 6}))}
    base, head = (
        TestResult(
            node_id="t",
            functions={NAME: {"run, run.py": 40, "work, run.py": 10 * calls}},
            calls={"work, run.py": {"run, run.py:5": calls}, "run, run.py": {TEST: 1}},
            lines={"run, run.py:5": text},
        )
        for calls, text in ((2, before), (3, "size = work(limit)"))
    )
    line = GrownLines(base, head, edits).line_of([("work, run.py", 10)], NAME)
    assert line is not None
    assert line.place == expected


def test_a_line_that_calls_more_comes_before_the_head_of_what_lost_statements(tmp_path: Path) -> None:
    Finder(tmp_path)
    edits = {"shop.py": EditedFile(tmp_path / "shop.py", cut=frozenset({"Shop.total"}))}
    base, head = (
        side(
            {**COUNTS, named("total"): total, named("look_up"): 10 * calls},
            {**CALLS, named("look_up"): {place("total", "prices.sort"): calls}},
        )
        for total, calls in ((60, 10), (900, 60))
    )
    for rises in ((840, 500), (400, 500)):
        risen = list(zip((named("total"), named("look_up")), rises, strict=True))
        line = GrownLines(base, head, edits).line_of(risen, NAME)
        assert line is not None
        assert (line.place, line.is_edited) == (place("total", "prices.sort"), False)


def test_a_few_calls_of_an_edited_line_may_do_most(found: Finder) -> None:
    """They are the larger ones: by the mean of those before, they explain little."""
    calls = {named("look_up"): {**CALLS[named("look_up")], place("sell", "return self.total"): 2}}
    line = found({named("look_up"): 900}, calls, "return self.total", "self.name")
    assert line is not None
    assert (line.place, line.is_edited) == (place("sell", "return self.total"), True)


def test_new_code_that_an_unedited_line_calls_is_named(found: Finder) -> None:
    calls = {named("check"): {place("total", "prices.sort"): 10}}
    edited = ("def check", "for item in items:", "self.look_up(item)", "self.name")
    line = found({named("check"): 500}, calls, *edited[1:], new="Shop.check")
    assert line is not None
    assert (line.place, line.is_edited) == (place("check", "for item in items:"), True)
    # The line of it that calls what rose as well says more than its head.
    calls = CHECKED | calls
    line = found({named("check"): 500, named("look_up"): 200}, calls, *edited, new="Shop.check")
    assert line is not None
    assert line.place == place("check", "self.look_up(item)")


def test_a_moved_function_is_called_as_often(tmp_path: Path) -> None:
    Finder(tmp_path)
    old = named("look_up").replace("shop.py", "old.py")
    calls = {old if name == named("look_up") else name: places for name, places in CALLS.items()}
    counts = {old if name == named("look_up") else name: count for name, count in COUNTS.items()}
    edits = {
        "shop.py": EditedFile(
            tmp_path / "shop.py", lines=frozenset({at("return item"), at("return self.look")})
        )
    }
    lines = GrownLines(side(counts, calls), side({**COUNTS, named("look_up"): 900}, CALLS), edits)
    line = lines.line_of([(named("look_up"), 800)], NAME)
    assert line is not None
    assert line.place == place("look_up", "return item")


@pytest.mark.parametrize(
    ("gone", "calls", "expected", "rise"),
    [
        ("search", 10, place("look_up", "return item"), 800),
        ("search", 5, place("price", "return self.look_up"), 900),
        ("price.<locals>.<lambda>", 10, place("price", "return self.look_up"), 900),
        ("check", 10, place("price", "return self.look_up"), 900),
    ],
    ids=["a new name", "called less often", "a lambda", "still there"],
)
def test_a_renamed_function_with_another_body_has_its_own_edit(
    tmp_path: Path, gone: str, calls: int, expected: str, rise: int
) -> None:
    Finder(tmp_path)
    call = place("price", "return self.look_up")
    before = {name: places for name, places in CALLS.items() if name != named("look_up")}
    counts = {named(gone): 100} | {name: n for name, n in COUNTS.items() if name != named("look_up")}
    base = side(counts, before | {named(gone): {call: calls}})
    base = replace(base, lines={**base.lines, call: "return self.search(item)"})
    edited = EditedFile(
        tmp_path / "shop.py",
        lines=frozenset({at("return self.look_up"), at("return item")}),
        new=frozenset({"Shop.look_up"}),
    )
    head = side({**COUNTS, named("look_up"): 900}, CALLS)
    total = [Samples.constant(sum(one.functions[NAME].values()), steps=1) for one in (base, head)]
    change = Change(op=None, metric=NAME, base=total[0], head=total[1], verdict=None)
    found = with_grown_functions(change, base, head, regressed=(), edited={"shop.py": edited})
    assert found.line is not None
    assert (found.line.place, found.line.is_edited) == (expected, True)
    assert found.cause == f"in {named('look_up')} (+{rise})"


def test_a_side_without_calls_names_no_caller(tmp_path: Path) -> None:
    Finder(tmp_path)
    edits = {"shop.py": EditedFile(tmp_path / "shop.py", lines=frozenset({at("prices = [")}))}
    lines = GrownLines(side(COUNTS, {}), side(COUNTS, CALLS), edits)
    assert (
        lines.caller_of(CallLine(function="Shop.look_up", file="shop.py", number=at("return item"))) is None
    )


def test_the_caller_of_an_unedited_line_that_calls_it_more(tmp_path: Path) -> None:
    Finder(tmp_path)
    edits = {
        "shop.py": EditedFile(tmp_path / "shop.py", lines=frozenset({at("self.check"), at("prices = [")}))
    }
    lines = GrownLines(side(COUNTS, CALLS), side(COUNTS, {**CALLS, **CHECKED}), edits)
    line = CallLine(function="Shop.look_up", file="shop.py", number=at("return item"))
    found = lines.caller_of(line)
    assert found is not None
    assert found.place == place("sell", "self.check")
    assert lines.caller_of(CallLine(function="Shop.total", file="shop.py", number=at("prices.sort"))) is None


def test_the_only_edit_that_ran_is_named(found: Finder) -> None:
    line = found.lines({}, {}, "prices.sort()", "for item in items:").edit_that_ran()
    assert line is not None
    assert (line.place, line.is_certain, line.is_edited) == (place("total", "prices.sort()"), True, True)


def test_of_several_edits_that_ran_that_of_a_loop_comes_first(found: Finder) -> None:
    line = found.lines({}, {}, "return self.look_up(item)", "prices.sort()").edit_that_ran()
    assert line is not None
    assert (line.place, line.is_certain) == (place("total", "prices.sort()"), False)


def test_of_several_edits_that_ran_that_of_the_busiest_function_comes_first(found: Finder) -> None:
    line = found.lines({}, {}, "self.check(items)", "return self.look_up(item)").edit_that_ran()
    assert line is not None
    assert line.place == place("price", "return self.look_up")


def test_an_edit_that_did_not_run_is_not_named(found: Finder) -> None:
    assert found.lines({}, {}, "for item in items:").edit_that_ran() is None
