"""The functions that a rise in instructions is attributed to."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from pytest_opprof.baselines.edited_file import EditedFile
from pytest_opprof.compare.comparison import CallLine, Change
from pytest_opprof.compare.functions import with_grown_functions, with_lines_of_functions
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import LIBRARY_INSTRUCTIONS, PYTHON_INSTRUCTIONS
from pytest_opprof.results.build import MAX_FUNCTIONS
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples

NAME = PYTHON_INSTRUCTIONS.name


def explained(before: Mapping[str, int], after: Mapping[str, int]) -> Change:
    base, head = (Samples.constant(sum(side.values()), steps=1) for side in (before, after))
    change = Change(op=None, metric=NAME, base=base, head=head, verdict=None)
    sides = (TestResult(node_id="t", functions={NAME: side}) for side in (before, after))
    return with_grown_functions(change, *sides, regressed=())


def test_function_that_grew_most_is_named() -> None:
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


def test_renamed_and_edited_function_grew_by_the_difference() -> None:
    """Not by all its instructions, which would exceed the total's rise."""
    found = explained({"old, x.py": 7464, "b, x.py": 10}, {"new, x.py": 7524, "b, x.py": 1030})
    assert found.cause == "in b, x.py (+1020); new, x.py (+60)"


def test_extracted_function_grew_by_the_difference() -> None:
    found = explained(
        {"add, x.py": 6500, "score, x.py": 900}, {"add, x.py": 500, "count, x.py": 6132, "score, x.py": 3100}
    )
    assert found.cause == "in score, x.py (+2200); count, x.py (+132)"


def test_a_method_whose_class_was_renamed_is_the_same() -> None:
    found = explained({"Old.add, x.py": 50, "b, x.py": 10}, {"New.add, x.py": 90, "b, x.py": 110})
    assert found.cause == "in b, x.py (+100); New.add, x.py (+40)"


def test_comprehensions_of_two_functions_are_not_the_same() -> None:
    before = {"a.<locals>.<listcomp>, x.py": 1000, "c, x.py": 10}
    found = explained(before, {"b.<locals>.<listcomp>, x.py": 5000, "c, x.py": 4000})
    assert found.cause == "in b.<locals>.<listcomp>, x.py (+5000); c, x.py (+3990)"


def test_many_functions_are_counted() -> None:
    found = explained({}, {f"f{number}, x.py": 10 + number for number in range(5)})
    assert found.cause == "in f4, x.py (+14); f3, x.py (+13); f2, x.py (+12); 2 more"


def test_function_that_a_full_table_lacked_is_not_new() -> None:
    """A large function was removed, so an unchanged one enters the table."""
    stay = {f"f{number}, x.py": 9_000 for number in range(MAX_FUNCTIONS - 2)}
    base = {"removed, x.py": 20_000, "b, x.py": 9_100, **stay}
    found = explained(base, {"b, x.py": 40_100, **stay, "unchanged, x.py": 9_000})
    assert found.cause == "in b, x.py (+31000)"


def test_edited_caller_beyond_a_full_table_is_named(tmp_path: Path) -> None:
    """It runs little itself, and most of the functions that ran are kept."""
    (tmp_path / "x.py").write_text("def score(words):\n    stem(words)\n")
    edited = {"x.py": EditedFile(tmp_path / "x.py", lines=frozenset({2}))}
    stay = {f"f{number}, y.py": 900 for number in range(MAX_FUNCTIONS - 1)}
    before, after = (
        TestResult(node_id="t", functions={NAME: {"stem, y.py": count, **stay}}) for count in (1_000, 2_000)
    )
    base, head = (Samples.constant(count, steps=1) for count in (1_000, 2_000))
    change = Change(op=None, metric=NAME, base=base, head=head, verdict=None)
    line = with_grown_functions(change, before, after, regressed=(), edited=edited).line
    assert line is not None
    assert line.place == "score, x.py"


def test_fall_has_no_cause() -> None:
    found = explained({"a, x.py": 30}, {"a, x.py": 10})
    assert found.line is None
    assert found.cause == ""


def of_libraries(
    *, regressed: Collection[str] = (), edited: Mapping[str, EditedFile] = MappingProxyType({})
) -> Change:
    """A library's instructions rise, while two of the project's own functions rise by less."""
    metric = LIBRARY_INSTRUCTIONS.name
    base, head = (Samples.constant(count, steps=1) for count in (100, 900))
    change = Change(op=None, metric=metric, base=base, head=head, verdict=None)
    before, after = (
        TestResult(node_id="t", functions={metric: {"copy, copy.py": count}, NAME: own})
        for count, own in (
            (100, {"f, x.py": 10, "g, y.py": 10}),
            (900, {"f, x.py": 30, "g, y.py": 15}),
        )
    )
    return with_grown_functions(change, before, after, regressed=regressed, edited=edited)


def test_library_rise_is_blamed_on_a_project_function() -> None:
    found = of_libraries()
    assert found.line is not None
    assert found.line.place == "f, x.py"
    assert found.cause == "in copy, copy.py (+800); Python instructions in f, x.py (+20)"
    found = of_libraries(edited={"y.py": EditedFile(Path("y.py"))})
    assert found.line is not None
    assert found.line.place == "g, y.py"


def test_regressed_function_is_not_named_twice() -> None:
    found = of_libraries(regressed={NAME})
    assert found.line is not None
    assert found.line.place == "f, x.py"
    assert found.cause == "in copy, copy.py (+800)"


def test_edited_caller_precedes_its_callees(tmp_path: Path) -> None:
    """It calls an unedited function of its file once more, which runs most of the new instructions."""
    (tmp_path / "x.py").write_text("def stem(word):\n    return word\n\ndef score(words):\n    stem(words)\n")
    edited = {"x.py": EditedFile(tmp_path / "x.py", lines=frozenset({5}))}
    base, head = (Samples.constant(count, steps=1) for count in (100, 900))
    change = Change(op=None, metric=NAME, base=base, head=head, verdict=None)
    before, after = (
        TestResult(node_id="t", functions={NAME: {"stem, x.py": stem, inner: score}})
        for inner in ("score.<locals>.<genexpr>, x.py",)
        for stem, score in ((90, 10), (870, 30))
    )
    for files, expected in (({}, "stem"), (edited, "score.<locals>.<genexpr>")):
        line = with_grown_functions(change, before, after, regressed=(), edited=files).line
        assert line is not None
        assert line.function == expected


SHOP = """\
def score(words):
    return [copy.deepcopy(word) for word in words]

def helper(words):
    return Index(words)

def twin(words):
    return Index(words)
"""


@pytest.mark.parametrize(
    ("lines", "metric", "grown", "own", "expected"),
    [
        # A helper was extracted, so the copying function runs fewer instructions of its own.
        ({2, 5}, LIBRARY_INSTRUCTIONS.name, "deepcopy, copy.py", "helper, x.py", "score, x.py"),
        # A cache was lost, and an unedited function of another file, which fills it, runs more.
        ({5}, LIBRARY_INSTRUCTIONS.name, "compile, re.py", "Index.__init__, y.py", "helper, x.py"),
        ({5}, NAME, "", "Index.__init__, y.py", "helper, x.py"),
        # its own comprehension runs more as well
        ({2}, LIBRARY_INSTRUCTIONS.name, "deepcopy, copy.py", *["score.<locals>.<listcomp>, x.py"] * 2),
        # nothing says which of two edited lines calls it more
        ({5, 8}, NAME, "", "Index.__init__, y.py", "Index.__init__, y.py"),
        # it was edited itself, whatever calls it
        ({2, 5}, NAME, "", "score, x.py", "score, x.py"),
        ({1}, LIBRARY_INSTRUCTIONS.name, "deepcopy, copy.py", "helper, x.py", "helper, x.py"),
    ],
)
def test_edited_line_calling_what_grew_is_the_cause(
    *, tmp_path: Path, lines: set[int], metric: str, grown: str, own: str, expected: str
) -> None:
    (tmp_path / "x.py").write_text(SHOP)
    edited = {"x.py": EditedFile(tmp_path / "x.py", lines=frozenset(lines))}
    base, head = (Samples.constant(count, steps=1) for count in (100, 900))
    change = Change(op=None, metric=metric, base=base, head=head, verdict=None)
    functions = dict.fromkeys(["score, x.py", "helper, x.py", "twin, x.py"], 50)
    before, after = (
        TestResult(node_id="t", functions={LIBRARY_INSTRUCTIONS.name: {grown: n}, NAME: functions | {own: n}})
        for n in (100, 900)
    )
    found = with_grown_functions(change, before, after, regressed=(), edited=edited)
    assert found.line is not None
    assert found.line.place == expected
    assert found.cause.endswith(f"; called in {expected}") == (expected != own)


def test_methods_of_one_name_belong_to_the_caller_that_grew(tmp_path: Path) -> None:
    """`bytes.decode` is not the decoder's own method."""
    (tmp_path / "x.py").write_text(
        "def title(raw):\n    return raw.decode()\n\ndef validate(items):\n    return [json.load(item) for item in items]\n"
    )
    edited = {"x.py": EditedFile(tmp_path / "x.py", lines=frozenset({2, 5}))}
    base, head = (Samples.constant(count, steps=1) for count in (110, 1000))
    change = Change(op=None, metric=LIBRARY_INSTRUCTIONS.name, base=base, head=head, verdict=None)
    before, after = (
        TestResult(
            node_id="t",
            functions={
                LIBRARY_INSTRUCTIONS.name: {"JSONDecoder.decode, json.py": decode, "load, json.py": load},
                NAME: {"title, x.py": 50, "validate, x.py": own},
            },
        )
        for decode, load, own in ((100, 10, 50), (900, 100, 60))
    )
    found = with_grown_functions(change, before, after, regressed=(), edited=edited)
    assert found.line is not None
    assert found.line.place == "validate, x.py"


def risen_with(
    folder: Path,
    source: str,
    lines: Collection[int],
    *,
    metric: str,
    **functions: Mapping[str, tuple[int, int]],
) -> str:
    """The place that is named when functions rise, if these lines of `x.py` were edited."""
    (folder / "x.py").write_text(source)
    edited = {"x.py": EditedFile(folder / "x.py", lines=frozenset(lines))}
    kinds = {LIBRARY_INSTRUCTIONS.name: functions.get("libraries", {}), NAME: functions["own"]}
    sides = [
        {kind: {name: counts[side] for name, counts in of_kind.items()} for kind, of_kind in kinds.items()}
        for side in (0, 1)
    ]
    base, head = (Samples.constant(sum(side[metric].values()), steps=1) for side in sides)
    change = Change(op=None, metric=metric, base=base, head=head, verdict=None)
    before, after = (TestResult(node_id="t", functions=side) for side in sides)
    line = with_grown_functions(change, before, after, regressed=(), edited=edited).line
    assert line is not None
    return line.place


def test_small_part_of_a_library_does_not_decide(tmp_path: Path) -> None:
    """Modules are called without their method's name, so only the logging is called by name."""
    found = risen_with(
        tmp_path,
        "def load(log):\n    log.debug('x')\n\ndef run(layers, x):\n    for layer in layers: x = layer(x)\n",
        {2, 5},
        metric=LIBRARY_INSTRUCTIONS.name,
        libraries={
            "Module._call_impl, module.py": (10_000, 20_000),
            "Linear.forward, linear.py": (1_800, 3_600),
            "Logger.debug, logging.py": (100, 140),
        },
        own={"load, x.py": (20, 30), "run, x.py": (200, 400)},
    )
    assert found == "run, x.py"


def test_small_part_of_a_library_decides_if_no_edit_grew(tmp_path: Path) -> None:
    """A cache was lost: what is called by name is only the library's entrance."""
    found = risen_with(
        tmp_path,
        "def load(text):\n    return loads(text)\n",
        {2},
        metric=LIBRARY_INSTRUCTIONS.name,
        libraries={"scan, json.py": (100, 9_000), "loads, json.py": (10, 20)},
        own={"load, x.py": (30, 20), "other, x.py": (10, 12)},
    )
    assert found == "load, x.py"


def test_caller_that_grew_comes_before_one_that_did_not(tmp_path: Path) -> None:
    """Of three edited functions two call what grew most."""
    found = risen_with(
        tmp_path,
        "def a(n):\n    return build(n)\n\ndef b(n):\n    return [build(n), build(n)]\n\ndef c(n):\n    assert n\n",
        {2, 5, 8},
        metric=NAME,
        own={"a, x.py": (20, 20), "b, x.py": (20, 25), "c, x.py": (10, 22), "build, y.py": (100, 10_000)},
    )
    assert found == "b, x.py"


def test_small_edit_is_not_blamed_for_what_another_edit_calls(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("def a(n):\n    assert n\n\ndef b(n):\n    return build(n)[0]\n")
    edited = {"x.py": EditedFile(tmp_path / "x.py", lines=frozenset({2, 5}))}
    base, head = (Samples.constant(count, steps=1) for count in (150, 10060))
    change = Change(op=None, metric=NAME, base=base, head=head, verdict=None)
    before, after = (
        TestResult(node_id="t", functions={NAME: {"a, x.py": a, "b, x.py": b, "build, y.py": build}})
        for a, b, build in ((30, 20, 100), (42, 18, 10000))
    )
    found = with_grown_functions(change, before, after, regressed=(), edited=edited)
    assert found.line is not None
    assert found.line.place == "b, x.py"


def test_a_total_has_the_line_that_is_known_of_its_function() -> None:
    """What libraries run more is known by line; what the function itself runs more, by its name alone."""

    def risen(metric: str, function: str, number: int = 0) -> Change:
        line = CallLine(function=function, file="a.py", number=number)
        base, head = (Samples.constant(value, steps=1) for value in (1, 900))
        return Change(op=None, metric=metric, base=base, head=head, verdict=Verdict.REGRESSED, line=line)

    python, libraries = PYTHON_INSTRUCTIONS.name, LIBRARY_INSTRUCTIONS.name
    known = risen(libraries, "verify", 7)
    for function, number in (("verify", 7), ("verify.<locals>.<genexpr>", 7), ("other", 0)):
        found = with_lines_of_functions([risen(python, function), known])
        assert [change.line and change.line.number for change in found] == [number, 7]
    advisory = replace(known, verdict=None)
    (first, _) = with_lines_of_functions([risen(python, "verify"), advisory])
    assert first.line is not None
    assert first.line.number == 0
