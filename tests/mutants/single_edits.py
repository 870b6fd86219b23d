"""All single edits of a source file that change its behavior: one operator, number or statement each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_COMPARISONS: Final[dict[type[ast.cmpop], tuple[str, str]]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_ARITHMETIC: Final[dict[type[ast.operator], tuple[str, str]]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
}
_FUNCTIONS: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
# arguments that only state a default
_GUARDS: Final = frozenset({"strict", "check"})
# In search order; those without a counterpart are skipped, so that `->` is not read as `>`.
_C_TOKENS: Final = {
    "->": None,
    "<<": None,
    ">>": None,
    "++": None,
    "--": None,
    "<=": "<",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "&&": "||",
    "||": "&&",
    "+=": "-=",
    "-=": "+=",
    " < ": " <= ",
    " > ": " >= ",
    " + ": " - ",
    " - ": " + ",
    "!": "",
    "true": "false",
    "false": "true",
}
_C_TOKEN: Final = re.compile(r"\b\d+\b|" + "|".join(map(re.escape, _C_TOKENS)))
# A call as a statement; a missing `free` is for ASan to find.
_C_CALL: Final = re.compile(r"(?<=[;{})]\n)(?P<indent> {2,})(?!free\()[a-z_]\w*\([^;{}]*\);\n")
_C_NO_CODE: Final = re.compile(
    r'/\*.*?\*/|//[^\n]*|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\'',
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleEdit:
    """A piece of a file, and its replacement.

    Attributes:
        file: The file's path from the repository's root.
        start: The offset of the piece, in bytes.
        line: The line in which the piece starts, from 1.
        old: The piece.
        new: Its replacement.
    """

    file: str
    start: int
    line: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {_short(self.old)} -> {_short(self.new) or 'nothing'}"

    def applied(self, text: str) -> str:
        """The file's text with the edit."""
        raw, old = text.encode(), self.old.encode()
        end = self.start + len(old)
        assert raw[self.start : end] == old, f"{self}: the file is another"
        return (raw[: self.start] + self.new.encode() + raw[end:]).decode()


def single_edits(root: Path, file: str) -> list[SingleEdit]:
    """All edits of a Python or C file, in the order of its text."""
    raw = (root / file).read_bytes()
    found = _of_python(raw) if file.endswith(".py") else _of_c(raw)
    edits = [
        SingleEdit(file=file, start=start, line=raw[:start].count(b"\n") + 1, old=old, new=new)
        for start, old, new in found
    ]
    return sorted(edits, key=lambda edit: (edit.start, edit.old, edit.new))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."


class _Python(ast.NodeVisitor):
    """Collects the edits of a module, without those of annotations, docstrings and imports for types."""

    def __init__(self, raw: bytes) -> None:
        self.found: list[tuple[int, str, str]] = []
        self._raw = raw
        self._lines = [0]
        for line in raw.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        for statement in node.body:
            self.visit(statement)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in _GUARDS:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Skipped: it states an invariant."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Skipped: it words a message."""

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._replace(node, "pass")
            self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        self._replace(node, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace(node, "break")

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not isinstance(node.value, ast.Constant):
            self._replace(node.value, "None")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for at, (kind, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            left = node.comparators[at - 1] if at else node.left
            self._between(left, right, *_COMPARISONS[type(kind)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between(left, right, *words)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        # on texts or types it is not arithmetic
        if type(node.op) in _ARITHMETIC and not isinstance(node.left, ast.Constant | ast.JoinedStr):
            self._between(node.left, node.right, *_ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._put(self._start(node), "not ", "")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
            self._replace(node.func, _FUNCTIONS[node.func.id])
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replace(node, str(not node.value))
        elif isinstance(node.value, int):
            self._replace(node, str(node.value + 1))

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.end_lineno - 1] + node.end_col_offset

    def _replace(self, node: ast.expr | ast.stmt, new: str) -> None:
        self._put(self._start(node), self._raw[self._start(node) : self._end(node)].decode(), new)

    def _between(self, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        begin = self._end(left)
        between = self._raw[begin : self._start(right)].decode()
        if between.count(old) == 1 and "#" not in between:
            self._put(begin + between.index(old), old, new)

    def _put(self, start: int, old: str, new: str) -> None:
        self.found.append((start, old, new))


def _of_python(raw: bytes) -> list[tuple[int, str, str]]:
    visitor = _Python(raw)
    visitor.visit(ast.parse(raw))
    return visitor.found


def _of_c(raw: bytes) -> Iterator[tuple[int, str, str]]:
    text = raw.decode("ascii")  # so that offsets are offsets of bytes
    code = _C_NO_CODE.sub(lambda part: re.sub(r"[^\n]", " ", part[0]), text)
    for call in _C_CALL.finditer(code):
        start = call.end("indent")
        yield start, text[start : call.end() - 1], ";"
    for token in _C_TOKEN.finditer(code):
        new = _C_TOKENS.get(token[0], "")
        if token[0].isdecimal():
            yield token.start(), token[0], str(int(token[0]) + 1)
        elif new is not None:
            yield token.start(), token[0], new
