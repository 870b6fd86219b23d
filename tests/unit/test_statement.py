"""What is shown of a statement whose first line says little."""

import pytest

from pytest_opprof.statement import joined, rest_of_statement

LONG = "name: parameter.default for name, parameter in inspect.signature(made).parameters.items()"


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("[\n    math.sqrt(value)\n    for value in row\n]", "[math.sqrt(value) for value in row]"),
        ("rows = [\n    a(),  # once\n\n    # twice\n    b(),\n]\nc()", "rows = [a(), b(),]"),
        ("return {\n    **others,\n}", "return {**others,}"),
        ("for a in (\n    first, second\n):", "for a in (first, second):"),
        (
            f"return {{\n    {LONG}\n    if parameter.default is not parameter.empty\n}}",
            f"return {{{LONG} if ...",
        ),
        ("x = [", "x = ["),
    ],
    ids=["brackets", "assignment", "return", "loop", "long", "the last line"],
)
def test_brackets_are_shown_with_the_next_lines(source: str, shown: str) -> None:
    lines = [f"{line}\n" for line in source.split("\n")]
    assert joined(lines[0].strip(), rest_of_statement(lines, 1)) == shown


@pytest.mark.parametrize("line", ["a = f(", "norm = np.array(", "if a == b(", "x", "", "f(a, ["])
def test_a_line_that_says_something_stays_alone(line: str) -> None:
    assert rest_of_statement([line, "more)", "]"], 1) == ()
    assert rest_of_statement([line], 2) == ()
