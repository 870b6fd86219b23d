"""Text for a terminal."""

from hypothesis import example, given
from hypothesis import strategies as st
from support.forges.workflow_commands import obeyed

from pytest_opprof.report.text import columns, cut_end, cut_middle, escaped, table, wrapped

# characters of one and of two columns; terminals disagree about others
shapes = st.text(alphabet="abc:_日本語\n\x1b", max_size=60)
anything = st.text(max_size=60) | st.sampled_from(
    ["\ud800", "\x1b[31m", "a\nb", "\u202e", "\x00", "\x9b", "###[error]a", " ::set-output name=a::b", ":::a"]
)


@given(anything)
def test_escaped_text_is_printable(text: str) -> None:
    harmless = escaped(text)
    assert escaped(harmless) == harmless
    assert obeyed(harmless) == []
    assert harmless.isprintable()
    assert len(harmless.splitlines()) <= 1


def test_ordinary_text_is_left_alone() -> None:
    assert escaped("日本 · a\\n") == "日本 · a\\n"
    assert escaped("\x1b[31m") == "\\x1b[31m"
    assert escaped("\ud800") == "\\ud800"
    assert escaped("a.py::test_b ##") == "a.py::test_b ##"


def test_commands_of_ci_runners_are_escaped() -> None:
    assert escaped("  ::error::a") == r"  \x3a:error::a"
    assert escaped("a ##[error]b ##vso[task.complete]") == r"a #\x23[error]b #\x23vso[task.complete]"


@given(st.text(alphabet="a: [#", max_size=200), st.booleans())
@example(f"{'a' * 39} ::error::a", False)
@example(f"{'a' * 40}::error::a", True)
def test_no_line_of_a_wrapped_text_is_a_command(text: str, cuts: bool) -> None:
    assert obeyed("\n".join(wrapped(text, width=40, cuts=cuts))) == []


@given(st.text(max_size=80), st.integers(5, 60))
def test_cut_text_fits(text: str, width: int) -> None:
    for cut in (cut_middle(text, width=width), cut_end(text, width=width)):
        assert columns(cut) <= width
        assert (cut == text) is (columns(text) <= width)


def test_names_are_cut_in_the_middle() -> None:
    assert cut_middle("test_encoder_step_forward", width=13) == "test_...rward"


def test_cutting_is_linear() -> None:
    """This would not end within an hour if each character left out were a new count of all the others."""
    name = "日" * 200_000
    assert cut_end(name, width=len(name)) == f"{name[: len(name) // 2 - 2]}..."


@given(
    st.lists(st.tuples(shapes, shapes, shapes), min_size=1, max_size=5),
    st.integers(60, 120),
)
def test_tables_fit_the_terminal(rows: list[tuple[str, str, str]], width: int) -> None:
    lines = table(["name", "n", "why"], rows, width=width, names=0, sentences=2)
    assert len(lines) == len(rows) + 1
    middle = max(columns(escaped(row[1])) for row in rows)
    assert max(map(columns, lines)) <= max(width, middle + 2 * 12 + 4)


def test_columns_keep_their_side() -> None:
    lines = table(["op", "count"], [["a", "1"], ["bcd", "22"]], width=40, names=0, right=("count",))
    assert lines == ["op   count", "a        1", "bcd     22"]


def test_characters_of_two_columns_keep_columns_in_line() -> None:
    """Also where no other library is installed that knows them."""
    lines = table(
        ["op", "count", "on"], [["漢字", "1", "a"], ["abcde", "22", "b"]], width=40, names=0, right=("count",)
    )
    assert lines == ["op     count  on", "漢字       1  a", "abcde     22  b"]


@given(st.lists(st.text(alphabet="ab日本語", min_size=1, max_size=9), max_size=40), st.integers(40, 80))
def test_wrapped_sentences_fit_the_terminal(words: list[str], width: int) -> None:
    sentence = " ".join(words)
    lines = wrapped(sentence, width=width, first="日 ", rest="")
    assert all(columns(line) <= width for line in lines)
    assert " ".join(lines).removeprefix("日 ") == (sentence if words else "")
