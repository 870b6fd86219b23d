"""The edited lines of a file, and the functions that contain them."""

from __future__ import annotations

import ast
import contextlib
import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from pytest_opprof.baselines.code_scopes import FUNCTION, Part, Scope, lines_in, lines_of, parsed, scopes_in
from pytest_opprof.baselines.deciding_names import bound_names, deciding_names, is_leaving
from pytest_opprof.results.build import MAX_LINE
from pytest_opprof.statement import joined, rest_of_statement

# Statements that do nothing by themselves when the module runs, or only contain other statements.
_DOES_NOTHING: Final = (ast.Import, ast.ImportFrom, ast.If, ast.Try, ast.ExceptHandler, ast.With)
# Expressions that call something.
_CALLING: Final = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript)
_IDLE: Final = (ast.Import, ast.ImportFrom, ast.Assert, ast.Raise, ast.Pass)
_TELLING: Final = frozenset(
    {"print", "log", "debug", "info", "warning", "warn", "error", "exception", "critical"}
)
# What runs its body more often if its head was edited.
_LOOP: Final = (ast.For, ast.AsyncFor, ast.While)
_WITH_HEAD: Final = (*_LOOP, ast.If)
# The distance of a statement that may decide anything.
UNKNOWN: Final = 4


@dataclass(frozen=True)
class EditedFile:
    """The edits of a Python file."""

    path: Path  # the edited file
    lines: frozenset[int] = frozenset()  # the numbers of new and edited lines
    # The functions and classes that lost statements, and got none there. The module's name is empty.
    cut: frozenset[str] = frozenset()
    decorated: frozenset[str] = frozenset()  # those whose decorators changed
    new: frozenset[str] = frozenset()  # those that there were not

    def text_of(self, number: int) -> str:
        """A line as reports show it: without its indentation; empty if the file has changed since."""
        return joined(self._stripped(number)[:MAX_LINE], rest_of_statement(lines_of(self._source), number))

    def _stripped(self, number: int) -> str:
        lines = lines_of(self._source)
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
        """Each edit that may change how often other lines run: its innermost function, and its first line.

        Edited statements that follow each other are one edit, as are all edits of a file that is not Python.
        """
        found: list[tuple[str, int]] = []
        last = None
        for node, _, lines in self._parts:
            edited = sorted(self.lines.intersection(lines))
            function = self._innermost.get(lines.start, "")
            if edited and not _is_idle(node):
                found += [(function, edited[0])] if last != function else []
            last = function if edited else None
        return tuple(found) if self._parts else tuple(("", line) for line in sorted(self.lines)[:1])

    def defines(self, function: str) -> bool:
        """Whether the file has a function of this name now."""
        return any(scope.key.name == function for scope in self._functions)

    def decoration(self, function: str) -> int:
        """The line of a function's edited decorator, or of its `def` if one is gone; 0 if none was edited."""
        return self._head(function) if function in self.decorated else 0

    def cutting(self, function: str) -> int:
        """The line of the `def` of a function that lost statements and got none there; 0 for others."""
        return self._head(function) if function in self.cut else 0

    def _head(self, function: str) -> int:
        lines = next((scope.lines for scope in self._functions if scope.key.name == function), range(0))
        heads = (line for line in lines if self._stripped(line).startswith(("def ", "async def ")))
        head = next(heads, 0)
        return next((line for line in range(lines.start, head) if line in self.lines), head)

    def share_a_loop(self, *numbers: int) -> bool:
        """Whether one loop runs all of these lines."""
        loops = (lines_in(node) for node, *_ in self._parts if isinstance(node, _LOOP))
        return any(all(number in lines for number in numbers) for lines in loops)

    def head_around(self, number: int) -> int:
        """The edited line in the innermost edited head of a loop, branch or function around a line, or 0.

        That of a function is its edited decorator, or its `def` if one is gone.
        """
        edited = (
            min(self.lines.intersection(head))
            for node, _, head in self._parts
            if isinstance(node, _WITH_HEAD) and not self.lines.isdisjoint(head)
            if number in lines_in(node) and number not in head
        )
        return max(edited, default=0) or self.decoration(self._innermost.get(number, ""))

    def distance(self, edit: int, line: int) -> float:
        """How far an edit is from deciding how often a later line of its function runs: 0 is the nearest.

        It is infinite for an edit that only binds what is not used for that.
        """
        node, head = next(
            ((node, head) for node, _, head in reversed(self._parts) if edit in head), (None, ())
        )
        if isinstance(node, _WITH_HEAD) and (line in lines_in(node) or is_leaving(node)):
            return 0
        bound = bound_names(node, self.lines.intersection(head))
        found = self._distance_of(bound or (), line)
        is_known = bound is not None and not isinstance(node, list)
        return found if is_known else min(found, UNKNOWN)

    def constants(self, other: EditedFile, line: int) -> Iterator[tuple[float, int]]:
        """The edits of module and class variables that decide how often a line of `other` runs."""
        for function, number in self.places:
            node = next((node for node, _, head in reversed(self._parts) if number in head), None)
            bound = () if function or "" in self.new else bound_names(node, self.lines)
            found = other._distance_of(bound or (), line)
            if found < math.inf:
                yield found, number

    def _distance_of(self, bound: Collection[str], line: int) -> float:
        if line not in self._deciding:
            self._deciding[line] = deciding_names(self._module, line)
        names = self._deciding[line]
        return min((names[name] for name in bound if name in names), default=math.inf)

    @cached_property
    def _deciding(self) -> dict[int, Mapping[str, int]]:
        return {}

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
            if isinstance(node, _CALLING) and not self.lines.isdisjoint(lines_in(node))
            for line in (node.lineno, node.func.end_lineno if isinstance(node, ast.Call) else None)
            if line is not None
        }
        return self.lines | begun

    @cached_property
    def _within(self) -> frozenset[int]:
        """The lines in statements with an edited head, and in functions with edited decorators."""
        decorated = (scope.lines for scope in self._functions if scope.key.name in self.decorated)
        headed = (
            lines_in(node)
            for node, _, head in self._parts
            if isinstance(node, _WITH_HEAD) and not self.lines.isdisjoint(head)
        )
        return frozenset(line for lines in (*decorated, *headed) for line in lines)

    @cached_property
    def _innermost(self) -> dict[int, str]:
        """By line: the innermost function around it, because inner functions come later."""
        return {line: scope.key.name for scope in self._functions for line in scope.lines}

    @cached_property
    def _outside(self) -> frozenset[int]:
        """The lines of code outside of functions, without imports, docstrings and signatures."""
        return frozenset(
            line
            for scope in self._scopes
            if not (issubclass(scope.kind, FUNCTION) or "<locals>" in scope.key.name)
            for node, _, lines in scope.parts
            if not isinstance(node, (list, *_DOES_NOTHING))
            for line in lines
        )

    @cached_property
    def _functions(self) -> list[Scope]:
        return [scope for scope in self._scopes if issubclass(scope.kind, FUNCTION)]

    @cached_property
    def _parts(self) -> list[Part]:
        """All statements and signatures, in the order of their lines."""
        parts = (part for scope in self._scopes for part in scope.parts)
        return sorted(parts, key=lambda part: part[2].start)

    @cached_property
    def _scopes(self) -> list[Scope]:
        return scopes_in(self._module, "", self._source)

    @cached_property
    def _source(self) -> bytes:
        with contextlib.suppress(OSError):
            return self.path.read_bytes() if self.path.suffix == ".py" else b""
        return b""

    @cached_property
    def _module(self) -> ast.Module:
        """The file's syntax; empty if it has errors."""
        return parsed(self._source) or ast.Module(body=[], type_ignores=[])


def _is_idle(node: object) -> bool:
    """Whether a statement changes nothing that others do: an import, a check, a message, a text."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        return name in _TELLING
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        is_about = isinstance(target, ast.Name) and target.id.startswith("__")  # as __all__ and __version__
        return is_about or (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str))
    return isinstance(node, _IDLE)
