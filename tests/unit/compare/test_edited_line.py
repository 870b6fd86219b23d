"""The edited line that makes an unedited one run more often."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.documents.strategies import simple_test

from pytest_opprof.baselines.edited_file import EditedFile
from pytest_opprof.compare.call_sites import CallSites
from pytest_opprof.compare.comparison import CallLine
from pytest_opprof.compare.edited_line import edit_behind, edited_line
from pytest_opprof.metrics import PYTHON_INSTRUCTIONS

LINE = CallLine(function="Model.forward", file="model.py", number=4, text="return x * 2")
WAYS = {
    "Model.forward, model.py:4": ("fit, train.py:9", "evaluate, train.py:40", "fit, train.py:12"),
    "fit, train.py:9": ("test_fit, test_it.py:3",),
    "fit, train.py:12": ("fit, train.py:9", "test_fit, test_it.py:3"),
    "evaluate, train.py:40": ("test_fit, test_it.py:5",),
}


def edits_of(edited: dict[str, set[int]]) -> dict[str, EditedFile]:
    return {file: EditedFile(Path(file), lines=frozenset(lines)) for file, lines in edited.items()}


@pytest.mark.parametrize(
    ("edited", "place"),
    [
        ({"train.py": {12}}, "fit, train.py:12"),
        ({"train.py": {12}, "test_it.py": {3, 5}}, "fit, train.py:12"),
        ({"test_it.py": {5}}, "test_fit, test_it.py:5"),
        ({"train.py": {9, 40}}, "perhaps fit, train.py:9"),
        ({"model.py": {40}, "other.py": {9, 12}}, ""),
        ({}, ""),
    ],
    ids=["a caller", "the nearest", "further out", "two as near", "none on the way", "no edits"],
)
def test_the_nearest_edited_line_on_the_way_is_to_blame(edited: dict[str, set[int]], place: str) -> None:
    texts = {"fit, train.py:12": "model(x)  # once more"}
    head = replace(simple_test({"aten::mul": 8}), callers=WAYS, lines=texts)
    found = edited_line(LINE, head, edits_of(edited))
    assert (found is not None) == bool(place)
    if found is not None:
        assert found.is_edited
        assert found.is_certain != place.startswith("perhaps ")
        assert found.place == place.removeprefix("perhaps ")
        assert found.text == texts.get(found.place, "")


@pytest.mark.parametrize(
    ("edited", "place"),
    [
        ({2}, "run, loop.py:2"),
        ({2, 4}, "perhaps run, loop.py:2"),
        ({3}, "run, loop.py:3"),
        ({3, 4}, "perhaps run, loop.py:3"),
    ],
    ids=["the head", "a line of the body too", "a line of the body", "two lines of the body"],
)
def test_a_loop_with_several_ways_is_named_by_its_head(tmp_path: Path, edited: set[int], place: str) -> None:
    (tmp_path / "loop.py").write_text(
        "def run():\n    for _ in range(3):\n        inner()\n        inner()\n"
    )
    head = replace(
        simple_test({"aten::mul": 8}), callers={"inner, in.py:1": ("run, loop.py:3", "run, loop.py:4")}
    )
    edits = {"loop.py": EditedFile(tmp_path / "loop.py", lines=frozenset(edited))}
    found = edited_line(CallLine(function="inner", file="in.py", number=1), head, edits)
    assert found is not None
    assert f"{'' if found.is_certain else 'perhaps '}{found.place}" == place


LOOPS = """\
LIMITS = (1, 2, 3)
def run(values, every=True):
    total = int()
    for limit in LIMITS:
        if not every:
            continue
        for value in values:
            total += work(value, limit)
    return total
class Other:
    LIMIT = 3
"""


@pytest.mark.parametrize(
    ("edited", "place"),
    [
        ({1, 3}, "<module>, loops.py:1"),
        ({2, 3}, "run, loops.py:2"),
        ({1, 2}, "perhaps run, loops.py:2"),
        ({3, 7}, "run, loops.py:7"),
        ({3, 11}, "run, loops.py:3"),
    ],
    ids=["a constant", "a default", "both", "a loop", "a constant that is not used"],
)
def test_what_decides_how_often_a_line_runs_is_to_blame(tmp_path: Path, edited: set[int], place: str) -> None:
    (tmp_path / "loops.py").write_text(LOOPS)
    edits = {"loops.py": EditedFile(tmp_path / "loops.py", lines=frozenset(edited))}
    found = edited_line(CallLine(function="run", file="loops.py", number=8), simple_test({}), edits)
    assert found is not None
    assert f"{'' if found.is_certain else 'perhaps '}{found.place}" == place


@pytest.mark.parametrize(
    ("edited", "number"), [(7, 7), (8, 8), (9, 8)], ids=["the head", "the line", "beside it"]
)
def test_in_a_loop_with_an_edited_head_that_is_named(tmp_path: Path, edited: int, number: int) -> None:
    (tmp_path / "loops.py").write_text(LOOPS)
    edits = {"loops.py": EditedFile(tmp_path / "loops.py", lines=frozenset({edited, 11}))}
    line = CallLine(function="run", file="loops.py", number=8, is_certain=False)
    found = edit_behind(line, CallSites(simple_test({}), simple_test({})), edits)
    assert (found.number, found.is_edited, found.is_certain) == (number, edited == number, False)


@pytest.mark.parametrize(
    ("decorators", "edited", "number"), [("@a\n@b\n", set(), 3), ("@a\n@b\n", {2}, 2), ("", {3}, 3)]
)
def test_in_a_function_with_other_decorators_these_are_named(
    tmp_path: Path, decorators: str, edited: set[int], number: int
) -> None:
    """A lost `no_grad` leaves no line of its own; what was edited below it is nearer."""
    path = tmp_path / "model.py"
    path.write_text(f"{decorators}def run(x):\n    y = 2\n    return x * y\n")
    edits = {"model.py": EditedFile(path, lines=frozenset(edited), decorated=frozenset({"run"}))}
    last = 3 + decorators.count("@")
    test = simple_test({"aten::mul": 8})
    line = CallLine(function="run", file="model.py", number=last, text="return x * y")
    found = edit_behind(line, CallSites(test, test), edits)
    assert (found.number, found.is_edited, found.is_certain) == (number, True, True)


def test_a_candidates_caller_is_a_candidate() -> None:
    head = replace(simple_test({"aten::mul": 8}), callers=WAYS)
    found = edited_line(replace(LINE, is_certain=False), head, edits_of({"train.py": {12}}))
    assert found is not None
    assert not found.is_certain


MODEL = """\
import torch; __version__ = 2
DEPTH = 6
class Model(torch.nn.Module):
    def __init__(self):
        self.inner = torch.nn.Sequential(*[Block() for _ in range(DEPTH)])
        self.name = "model"

    def forward(self, x, steps=4):
        limit = 9
        for _ in range(steps):
            x = self.inner(x)
            limit -= 1
        with torch.autocast("cpu", enabled=True):
            x = self.inner(x)
        return x

    def extra(self):
        return 1
"""
BLOCK = "class Block:\n    def forward(self, x):\n        y = 2\n        return x * y\n"


@pytest.mark.parametrize(
    ("edited", "place"),
    [
        ("def forward", "Model.forward, model.py:8"),
        ("limit = 9", "Model.forward, model.py:9"),
        ("with torch", "Model.forward, model.py:13"),
        ("self.inner = ", "Model.__init__, model.py:5"),
        ("DEPTH = 6", "<module>, model.py:2"),
        ("return 1", "Model.extra, model.py:18"),
        ("DEPTH = 6|self.inner = ", "Model.__init__, model.py:5"),
        ("limit = 9|self.inner = ", "Model.__init__, model.py:5"),
        ("def forward|self.inner = ", "Model.forward, model.py:8"),
        ("DEPTH = 6|return 1", ""),
        ("import torch", ""),
        ("limit = 9|limit -= 1", "perhaps Model.forward, model.py:12"),
        ("return x", ""),
        ('self.name = "model"', ""),
    ],
)
def test_an_edit_beside_the_way_is_found(tmp_path: Path, edited: str, place: str) -> None:
    for name, text in (("model.py", MODEL), ("block.py", BLOCK)):
        (tmp_path / name).write_text(text)
    numbers = {
        number
        for part in edited.split("|")
        for number, line in enumerate(MODEL.splitlines(), start=1)
        if part in line
    }
    head = replace(
        simple_test({"aten::mul": 8}),
        callers={
            "Block.forward, block.py:4": ("Model.forward, model.py:14",),
            "Model.forward, model.py:14": ("test_it, test_it.py:3",),
        },
    )
    line = CallLine(function="Block.forward", file="block.py", number=4)
    edits = {"model.py": EditedFile(tmp_path / "model.py", lines=frozenset(numbers))}
    found = edited_line(line, head, edits)
    assert (found.place if found else "") == place.removeprefix("perhaps ")
    if found is not None:
        assert found.is_edited
        assert found.is_certain != place.startswith("perhaps ")
        assert found.text == MODEL.splitlines()[found.number - 1].strip()
    # A file that is new says nothing about what ran before, and another edit may be the cause as well.
    new = {file: replace(one, new=frozenset({""})) for file, one in edits.items()}
    data = edits | {"net.yaml": EditedFile(tmp_path / "net.yaml", lines=frozenset({1}))}
    cut = edits | {"other.py": EditedFile(tmp_path / "other.py", cut=frozenset({"Base"}))}
    if place.startswith("<module>"):
        assert [edited_line(line, head, one) for one in (new, data, cut)] == [None] * 3
    # An edit of the line's own function is nearer, unless that runs more often as a whole.
    edits["block.py"] = EditedFile(tmp_path / "block.py", lines=frozenset({3}))
    own = edited_line(line, head, edits)
    assert own is not None
    assert own.place == "Block.forward, block.py:3"
    if "forward" in place:
        assert edited_line(line, head, edits, is_of_callers=True) == found


def test_of_two_classes_that_are_made_otherwise_the_nearer_is_a_candidate(tmp_path: Path) -> None:
    for name in ("model.py", "block.py"):
        (tmp_path / name).write_text("class A:\n    def __init__(self):\n        self.size = 2\n")
    edits = {name: EditedFile(tmp_path / name, lines=frozenset({3})) for name in ("model.py", "block.py")}
    head = replace(
        simple_test({"aten::mul": 8}), callers={"A.forward, block.py:9": ("A.forward, model.py:9",)}
    )
    found = edited_line(CallLine(function="A.forward", file="block.py", number=9), head, edits)
    assert found is not None
    assert (found.place, found.is_certain) == ("A.__init__, block.py:3", False)


@pytest.mark.parametrize(
    ("ran", "gone", "place"),
    [
        ("Model.forward, model.py", "Base.run", "<module>, model.py:2"),
        ("Model.extra, model.py", "Base.run", None),
        ("Base.run, other.py", "Base.run", None),
        ("Base.run, other.py", "Base.stop", "<module>, model.py:2"),
    ],
    ids=["one", "another", "what lost a statement", "what did not run"],
)
def test_of_several_edits_the_only_one_that_ran_is_likely(
    tmp_path: Path, ran: str, gone: str, place: str | None
) -> None:
    for name, text in (("model.py", MODEL), ("block.py", BLOCK), ("other.py", "LIMIT = 1\n")):
        (tmp_path / name).write_text(text)
    edits = {
        "model.py": EditedFile(tmp_path / "model.py", lines=frozenset({2, 18})),
        "other.py": EditedFile(tmp_path / "other.py", cut=frozenset({gone})),
    }
    functions = {PYTHON_INSTRUCTIONS.name: {"Block.forward, block.py": 8, "main, model.py": 1, ran: 1}}
    head = replace(simple_test({"aten::mul": 8}), functions=functions)
    found = edited_line(
        CallLine(function="Block.forward", file="block.py", number=4),
        replace(head, callers={"Block.forward, block.py:4": ("test_it, test_it.py:3",)}),
        edits,
    )
    assert (found and found.place) == place
    assert found is None or not found.is_certain


def test_what_only_calls_other_ops_gets_them_from_an_edit_that_binds_what_is_used(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def run(x, act):\n    y = x\n    act = other\n    return act(x)\n")
    line = CallLine(function="run", file="model.py", number=4)
    for number, place in ((2, None), (3, "run, model.py:3")):
        edits = {"model.py": EditedFile(tmp_path / "model.py", lines=frozenset({number}))}
        found = edited_line(line, simple_test({}), edits, calls_more=False)
        assert (found and found.place) == place


def test_edit_after_a_line_is_its_cause_in_a_loop_alone(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    edits = {"model.py": EditedFile(tmp_path / "model.py", lines=frozenset({12}))}
    for number, place in ((11, "Model.forward, model.py:12"), (9, None)):
        line = CallLine(function="Model.forward", file="model.py", number=number)
        found = edited_line(line, simple_test({}), edits)
        assert (found and found.place) == place


def test_a_function_on_the_way_that_lost_statements_is_named_by_its_call() -> None:
    head = replace(simple_test({"aten::mul": 8}), callers=WAYS)
    found = edited_line(LINE, head, {"train.py": EditedFile(Path("train.py"), cut=frozenset({"evaluate"}))})
    assert found is not None
    assert (found.place, found.is_edited) == ("evaluate, train.py:40", False)
