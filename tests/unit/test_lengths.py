"""No code file is over 400 lines, and no function over 60: in the product, tests, benches and docs."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("pytest_opprof", "native", "tests", "benchmarks", "examples", "docs")
MOST_OF_A_FILE, MOST_OF_A_FUNCTION = 400, 60


def sources() -> Iterator[Path]:
    for folder in FOLDERS:
        found = [path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".c", ".h", ".cpp"}]
        assert found, folder
        yield from found


def functions_of_python(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, node.end_lineno - node.lineno + 1


def functions_of_c(path: Path) -> Iterator[tuple[str, int]]:
    """From the last unindented line before a block to its closing brace."""
    begun, is_inside = 0, False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith(("namespace", "extern")):
            continue
        if not is_inside and re.match(r"\w", line):
            begun = number
        is_inside = is_inside or (line.endswith("{") and begun > 0)
        if line.startswith("}") and is_inside:
            yield f"line {begun}", number - begun + 1
            begun, is_inside = 0, False


def functions_of(path: Path) -> Iterator[tuple[str, int]]:
    return functions_of_python(path) if path.suffix == ".py" else functions_of_c(path)


def test_no_file_is_too_long() -> None:
    lines = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in sources()}
    assert {path: count for path, count in lines.items() if count > MOST_OF_A_FILE} == {}


def test_no_function_is_too_long() -> None:
    found = {
        f"{path.name}:{name}": lines
        for path in sources()
        for name, lines in functions_of(path)
        if lines > MOST_OF_A_FUNCTION
    }
    assert found == {}


def test_functions_are_found(tmp_path: Path) -> None:
    c, python = tmp_path / "a.c", tmp_path / "a.py"
    c.write_text(
        "static int f(int a,\n             int b) {\n    return a;\n}\n\nstruct g {\n    int h;\n};\n"
    )
    python.write_text("class A:\n    def f(self):\n        return 1\n")
    assert [lines for _, lines in functions_of(c)] == [4, 3]
    assert list(functions_of(python)) == [("f", 2)]
