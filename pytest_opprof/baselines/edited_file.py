"""The edited lines of a file, and the functions that contain them."""

from __future__ import annotations

import ast
import warnings
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

_FUNCTION: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
# Statements that do nothing by themselves when the module runs, or only contain other statements.
_DOES_NOTHING: Final = (*_FUNCTION, ast.ClassDef, ast.Import, ast.ImportFrom, ast.If, ast.Try, ast.With)
# Expressions that call something.
_CALLING: Final = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript)
# What runs its body more often if its head was edited.
_WITH_HEAD: Final = (ast.For, ast.AsyncFor, ast.While, ast.If)


class _Function(NamedTuple):
    name: str  # qualified
    start: int  # with decorators
    end: int


@dataclass(frozen=True)
class EditedFile:
    """The edits of a Python file.

    Attributes:
        path: The edited file.
        lines: The numbers of new and edited lines.
        cut: The functions that lost statements, and got none there.
        decorated: The functions whose decorators changed.
        is_new: Whether there was no such file.
    """

    path: Path
    lines: frozenset[int] = frozenset()
    cut: frozenset[str] = frozenset()
    decorated: frozenset[str] = frozenset()
    is_new: bool = False

    def text_of(self, number: int) -> str:
        """A line without its indentation; empty if the file has changed since."""
        lines = self._source.decode("utf-8", "replace").split("\n")
        return lines[number - 1].strip() if number <= len(lines) else ""

    def __contains__(self, number: object) -> bool:
        """Whether a line is new or edited, or runs otherwise because of an edit of what is around it.

        Around it are an expression of several lines, which counts as its first line; the head of a loop or
        `if`; and a function's decorators.
        """
        return number in self.changed or number in self._within

    @cached_property
    def functions(self) -> frozenset[str]:
        """The edited functions; none if code outside of functions was edited too."""
        if not self.lines.isdisjoint(self._outside):
            return frozenset()
        return self.cut | self.decorated | {self._innermost.get(line, "") for line in self.lines} - {""}

    @cached_property
    def places(self) -> tuple[tuple[str, int], ...]:
        """Each edit but those of imports: the innermost function around it, and its first line."""
        imports = {
            line
            for node, _ in self._statements
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for line in _lines_of(node)
        }
        edits = sorted(self.lines - imports)
        inside = [(self._innermost.get(line, ""), line) for line in edits]
        return tuple(
            one
            for before, one in zip([("", 0), *inside], inside, strict=False)
            if one != (before[0], before[1] + 1)
        )

    @cached_property
    def callers(self) -> Mapping[str, frozenset[str]]:
        """By called name: the functions whose edited lines call it."""
        found = defaultdict[str, set[str]](set)
        for node in ast.walk(self._module):
            if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
                called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                line = node.func.end_lineno
                if line in self.changed and line in self._innermost:
                    found[called].add(self._innermost[line])
        return {called: frozenset(functions) for called, functions in found.items()}

    @cached_property
    def changed(self) -> frozenset[int]:
        """The edited lines, and the lines where Python says that edited expressions are."""
        begun = {
            line
            for node in ast.walk(self._module)
            if isinstance(node, _CALLING) and not self.lines.isdisjoint(_lines_of(node))
            for line in (node.lineno, node.func.end_lineno if isinstance(node, ast.Call) else None)
            if line is not None
        }
        return self.lines | begun

    @cached_property
    def _within(self) -> frozenset[int]:
        """The lines in statements with an edited head, and in functions with edited decorators."""
        found = {
            line
            for one in self._functions
            if one.name in self.decorated
            for line in range(one.start, one.end + 1)
        }
        for node, _ in self._statements:
            if isinstance(node, _WITH_HEAD) and not self.lines.isdisjoint(
                range(node.lineno, node.body[0].lineno)
            ):
                found.update(_lines_of(node))
        return frozenset(found)

    @cached_property
    def _innermost(self) -> dict[int, str]:
        """By line: the innermost function around it, because inner functions come later."""
        return {line: one.name for one in self._functions for line in range(one.start, one.end + 1)}

    @cached_property
    def _functions(self) -> list[_Function]:
        """The functions of the file, outer ones first."""
        return [
            _Function(
                name=name,
                start=min((part.lineno for part in node.decorator_list), default=node.lineno),
                end=node.end_lineno or node.lineno,
            )
            for node, name in self._statements
            if isinstance(node, _FUNCTION)
        ]

    @cached_property
    def _outside(self) -> frozenset[int]:
        """The lines of code outside of functions, without imports and docstrings."""
        return frozenset(
            line
            for node, name in self._statements
            if "<locals>" not in name and not isinstance(node, _DOES_NOTHING)
            if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            for line in _lines_of(node)
        )

    @cached_property
    def _statements(self) -> list[tuple[ast.stmt, str]]:
        """All statements, each with its qualified name, or the prefix of names in its scope."""
        found: list[tuple[ast.stmt, str]] = []
        todo: list[tuple[ast.AST, str]] = [(node, "") for node in reversed(self._module.body)]
        while todo:
            node, around = todo.pop()
            name = inner = around
            if isinstance(node, (*_FUNCTION, ast.ClassDef)):
                name = around + node.name
                inner = f"{name}.<locals>." if isinstance(node, _FUNCTION) else f"{name}."
            if isinstance(node, ast.stmt):
                found.append((node, name))
            todo += [(part, inner) for part in ast.iter_child_nodes(node) if not isinstance(part, ast.expr)]
        return found

    @cached_property
    def _source(self) -> bytes:
        try:
            return self.path.read_bytes()
        except OSError:
            return b""

    @cached_property
    def _module(self) -> ast.Module:
        """The file's syntax; empty if it has errors."""
        try:
            with warnings.catch_warnings(action="ignore"):  # of the file's own escapes and comparisons
                return ast.parse(self._source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ast.Module(body=[], type_ignores=[])


def _lines_of(node: ast.expr | ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)
