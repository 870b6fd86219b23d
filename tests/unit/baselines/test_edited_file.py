"""Which functions of a file were edited."""

import math
from pathlib import Path

import pytest

from pytest_opprof.baselines.edited_file import UNKNOWN, EditedFile

SOURCE = """\
\"\"\"A shop.\"\"\"
if TYPE_CHECKING:
    import re
LIMIT = 3

@cache
@traced
def stem(word):
    found = []
    def inner():
        return 1
    return found

class Index:
    size = 4

    def score(self):
        if self.size:
            def inside():
                return 2
        return stem("a")


    async def load(self):
        try:
            return 3
        except OSError:
            return 4
        match self:
            case [*_]:
                return 5
"""
LINES = SOURCE.splitlines()


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(LINES, 1) if text in line)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "shop.py"
    file.write_text(SOURCE)
    return file


@pytest.mark.parametrize(
    ("text", "functions"),
    [
        ("found = []", {"stem"}),
        ("return 1", {"stem.<locals>.inner"}),
        ("return 2", {"Index.score.<locals>.inside"}),
        ("def score", {"Index.score"}),
        ("@traced", {"stem"}),
        ("return 3", {"Index.load"}),
        ("return 4", {"Index.load"}),
        ("return 5", {"Index.load"}),
        ("import re", set()),
        ("A shop", set()),
        ("LIMIT", set()),
        ("size = 4", set()),
        ("class Index", set()),
    ],
)
def test_a_line_is_of_the_innermost_function(path: Path, text: str, functions: set[str]) -> None:
    assert EditedFile(path, lines=frozenset({line_of(text)})).functions == functions


def test_names_called_by_edited_lines_are_known(path: Path) -> None:
    path.write_text(
        SOURCE.replace('stem("a")', 'self.words.stem(cut("a"))').replace("LIMIT = 3", "LIMIT = int()")
    )
    edited = EditedFile(path, lines=frozenset(map(line_of, ("LIMIT", 'stem("a")', "return 2"))))
    assert edited.callers == {"stem": {"Index.score"}, "cut": {"Index.score"}}
    assert EditedFile(path).callers == {}


def test_edits_outside_functions_leave_no_function_known(path: Path) -> None:
    """The effect of a module's constant is not limited to one function."""
    for text, expected in (
        ("LIMIT", set()),
        ("size = 4", set()),
        ("import re", {"stem"}),
        ("A shop", {"stem"}),
    ):
        edited = EditedFile(path, lines=frozenset({line_of("found = []"), line_of(text)}))
        assert edited.functions == expected


def test_a_function_that_lost_lines_was_edited(path: Path) -> None:
    assert EditedFile(path, cut=frozenset({"stem"})).functions == {"stem"}


def test_all_lines_of_a_function_are_edited_with_its_decorators(path: Path) -> None:
    inside = range(line_of("@cache"), line_of("return found") + 1)
    edited = EditedFile(path, lines=frozenset({line_of("@traced")}), decorated=frozenset({"stem"}))
    assert [number for number in range(1, len(LINES) + 1) if number in edited] == [*inside]
    assert edited.functions == {"stem"}
    # the line of `def` alone says nothing about the body
    assert line_of("found = []") not in EditedFile(path, lines=frozenset({line_of("def stem")}))


WRAPPED = """\
def match(self, rows):
    out = self.attend(
        rows,
        heads=2,
    )
    out = (
        out
        .scaled(2)
        .sum(3)
    )
    for _ in range(5):
        out = out - out.mean()
    else:
        out = out.exp()
    with self.traced():
        if out.any():
            out = out.log()
    return out
"""


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("heads=2", ["out = self.attend(", "heads=2"]),
        (".scaled(2)", ["out", ".scaled(2)", ".sum(3)"]),
        ("range(5)", ["range(5)", "- out.mean()", "else:", "out.exp()"]),
        ("out.mean()", ["- out.mean()"]),
        ("if out.any()", ["if out.any()", "out.log()"]),
        ("traced()", ["traced()"]),
    ],
)
def test_edit_means_its_expression_and_the_body_of_its_statement(
    tmp_path: Path, text: str, meant: list[str]
) -> None:
    (tmp_path / "a.py").write_text(WRAPPED)
    lines = WRAPPED.splitlines()
    (number,) = (at for at, line in enumerate(lines, start=1) if text in line)
    edited = EditedFile(tmp_path / "a.py", lines=frozenset({number}))
    found = [line.strip() for at, line in enumerate(lines, start=1) if at in edited]
    assert len(found) == len(meant)
    assert all(part in line for part, line in zip(meant, found, strict=True))


@pytest.mark.parametrize("content", [b"def f(:\n", b"\0", b"\xff\n"])
def test_a_file_that_cannot_be_read_has_lines_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.py").write_bytes(content)
    for name in ("a.py", "none.py"):
        edited = EditedFile(tmp_path / name, lines=frozenset({1}))
        assert (1 in edited, 2 in edited, edited.functions) == (True, False, frozenset())


@pytest.mark.filterwarnings("error")
def test_python_warnings_are_suppressed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f():\n    return '\\d'\n")
    assert EditedFile(tmp_path / "a.py", lines=frozenset({2})).functions == {"f"}


def test_an_edit_is_as_far_as_what_it_binds(tmp_path: Path) -> None:
    file = tmp_path / "steps.py"
    text = (
        "def run(job, n):\n    steps = 3\n    job.size = 4\n    options['n'] = 5\n    n = max(n, 1)\n"
        "    for step in range(steps):\n        job(step, job.size)\n    return job(options)\n"
    )
    file.write_text(text + "x" * 300 + " = 1\n")
    edited = EditedFile(file, lines=frozenset({2, 3, 4, 5}))
    assert [edited.distance(2, 7), edited.distance(3, 7), edited.distance(5, 7)] == [0, 3, math.inf]
    assert edited.distance(4, 8) == UNKNOWN  # whatever is named so
    assert edited.distance(6, 7) == 0  # the head of a loop
    assert len(edited.text_of(9)) == 200


def test_an_edit_that_only_opens_brackets_is_shown_with_the_next_lines(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(xs):\n    return [\n        x * 2\n        for x in xs\n    ]\n")
    edited = EditedFile(tmp_path / "a.py", lines=frozenset({2}))
    assert edited.text_of(2) == "return [x * 2 for x in xs]"
    assert edited.text_of(3) == "x * 2"
