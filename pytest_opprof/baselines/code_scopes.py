"""The statements of a Python source, by the module, class or function that they are in.

A statement has no comment, layout, docstring or annotation, and its names apart from its syntax.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

FUNCTION: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
# Python counts lines by these.
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_BLOCKS: Final = ("body", "handlers", "cases", "orelse", "finalbody")
# A statement runs otherwise inside of these; not inside of `with` or `try`.
_BRANCHES: Final = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.match_case, ast.ExceptHandler)
_IGNORED: Final = frozenset({"ctx", "annotation", "returns", "type_comment", "type_params", "kind", "simple"})
_BINDING: Final = (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
_Block: TypeAlias = "ast.stmt | ast.ExceptHandler | ast.match_case"
_ScopeNode: TypeAlias = "ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef"
Part: TypeAlias = "tuple[object, tuple[str, ...], range]"


class Statement(NamedTuple):
    """A statement without the ones inside it, or a signature, or a decorator."""

    shape: str  # its syntax without its names
    # The variables, `.attributes` and `=keywords` in their order, each with whether the statement binds it.
    names: tuple[tuple[str, bool], ...]
    lines: range  # the numbers of its lines

    @property
    def is_signature(self) -> bool:
        """Whether it is the signature of a function."""
        return self.shape.partition(":")[2].startswith("[arguments(")

    @property
    def outline(self) -> Hashable:
        """What two statements have alike that differ in variables alone."""
        return self.shape, tuple(name for name, _ in self.names if name.startswith((".", "=")))

    @property
    def meaning(self) -> Hashable:
        """What two statements that do the same have alike."""
        return self.shape, tuple(name for name, _ in self.names)


class Key(NamedTuple):
    """Names a scope: ``turn`` tells scopes of one name apart, such as a property's."""

    file: str
    name: str  # qualified; empty for a module
    turn: int


@dataclass
class Scope:
    """A module, class or function."""

    key: Key
    kind: type[ast.AST]
    around: tuple[Key, ...]  # the scopes around it, outer ones first
    lines: range  # the numbers of its lines, with decorators
    file_text: Sequence[str]  # the lines of its file, without indentation
    text: str  # its own lines, with the scopes inside it, and indentation relative to its own
    # Its statements, without those of the scopes inside it: syntax, the branches around it, lines.
    parts: list[Part] = field(default_factory=list)
    decorator_parts: list[Part] = field(default_factory=list)  # its decorators, in the same way

    @cached_property
    def statements(self) -> list[Statement]:
        """Its statements, the signature first."""
        return [self._statement(*part) for part in self.parts]

    @cached_property
    def decorators(self) -> list[Statement]:
        """Its decorators."""
        return [self._statement(*part) for part in self.decorator_parts]

    @property
    def own_name(self) -> str:
        """The last part of its qualified name."""
        return self.key.name.rpartition(".")[2]

    @cached_property
    def counts(self) -> Counter[Hashable]:
        """How often it has each statement."""
        return Counter(one.meaning for one in self.statements)

    def likeness(self, other: Scope) -> float:
        """The part of the statements that both have."""
        return (self.counts & other.counts).total() / (max(self.counts.total(), other.counts.total()) or 1)

    def _statement(self, node: object, path: Iterable[str], lines: range) -> Statement:
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            node = ast.Assign(targets=[node.target], value=node.value)
        names: list[tuple[str, bool]] = []
        try:
            shape = _shape(node, names)
        except (RecursionError, ValueError):  # a sum of hundreds of terms, a number of thousands of digits
            names, shape = [], "\n".join(self.file_text[line - 1] for line in lines)
        return Statement(f"{'/'.join(path)}:{shape}", tuple(names), lines)


def scopes_in(module: ast.Module, file: str, source: bytes) -> list[Scope]:
    """The scopes of a parsed source, outer ones first."""
    reader = _Reader(file, source)
    reader.read(module, "", ())
    return reader.found


def parsed(source: bytes) -> ast.Module | None:
    """Its syntax; None if Python cannot read it."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of the file's own escapes and comparisons
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def lines_of(source: bytes) -> list[str]:
    """The lines of a source, as Python counts them."""
    return _LINE_END.split(source.decode("utf-8", "replace"))


class _Reader:
    """Reads the scopes of a module."""

    def __init__(self, file: str, source: bytes) -> None:
        self._file = file
        self._lines = [line.rstrip() for line in lines_of(source)]
        self._stripped = [line.strip() for line in self._lines]
        self._turns = Counter[str]()
        self.found: list[Scope] = []

    def read(self, node: _ScopeNode, name: str, around: tuple[Key, ...]) -> None:
        key = Key(self._file, name, self._turns[name])
        self._turns[name] += 1
        lines = self._lines_of(node)
        indent = 0 if isinstance(node, ast.Module) else node.col_offset
        text = "\n".join(line[indent:] for line in self._lines[lines.start - 1 : lines.stop - 1])
        scope = Scope(key, type(node), around, lines, self._stripped, text)
        self.found.append(scope)
        if not isinstance(node, ast.Module):
            scope.decorator_parts = [(one, (), lines_in(one)) for one in node.decorator_list]
            parts: Sequence[ast.AST] = (
                [*node.bases, *node.keywords] if isinstance(node, ast.ClassDef) else [node.args]
            )
            scope.parts.append((parts, (type(node).__name__,), _head(node)))
        inner = f"{name}.<locals>." if isinstance(node, FUNCTION) else f"{name}." if name else ""
        inside: list[tuple[_Block, tuple[str, ...]]] = [(one, ()) for one in reversed(node.body)]
        while inside:
            one, path = inside.pop()
            if isinstance(one, (*FUNCTION, ast.ClassDef)):
                self.read(one, inner + one.name, (*around, key))
                continue
            if not _does_nothing(one):
                scope.parts.append((one, path, _head(one)))
            for block in reversed(_BLOCKS):
                children: Sequence[_Block] = getattr(one, block, ())
                # An `elif` is no deeper than its `if`.
                is_chained = block == "orelse" and len(children) == 1 and isinstance(children[0], ast.If)
                is_branch = isinstance(one, _BRANCHES) and not (is_chained and isinstance(one, ast.If))
                below = (*path, type(one).__name__, block) if is_branch else path
                inside += [(child, below) for child in reversed(children)]

    def _lines_of(self, node: _ScopeNode) -> range:
        if isinstance(node, ast.Module):
            return range(1, len(self._lines) + 1)
        start = min(one.lineno for one in (node, *node.decorator_list))
        return range(start, lines_in(node).stop)


def _does_nothing(one: _Block) -> bool:
    """Docstrings, and annotations without a value."""
    return (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)) or (
        isinstance(one, ast.AnnAssign) and one.value is None
    )


def _shape(node: object, names: list[tuple[str, bool]]) -> str:
    """The syntax of a node without its names, which are added to `names`."""
    match node:
        case ast.Name(id=name) | ast.arg(arg=name):
            names.append((name, not isinstance(getattr(node, "ctx", None), ast.Load)))
            return "$"
        case ast.Attribute(value=value, attr=name, ctx=context):
            names.append((f".{name}", not isinstance(context, ast.Load)))
            return f"{_shape(value, names)}.$"
        case ast.keyword(arg=str(name), value=value):
            names.append((f"={name}", False))
            return f"$={_shape(value, names)}"
        case ast.AST():
            is_block = isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case))
            if isinstance(node, _BINDING) and node.name is not None:
                names.append((node.name, True))
            parts = (
                _shape(value, names)
                for name, value in ast.iter_fields(node)
                if name not in _IGNORED and not (is_block and name in _BLOCKS)
                if not (name == "name" and value is not None and isinstance(node, _BINDING))
            )
            return f"{type(node).__name__}({', '.join(parts)})"
        case list():
            return f"[{', '.join(_shape(one, names) for one in node)}]"
        case _:
            return repr(node)


def lines_in(node: ast.expr | ast.pattern | ast.stmt | ast.ExceptHandler) -> range:
    """The numbers of a node's lines."""
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _head(node: _Block) -> range:
    """The lines of a statement up to its body."""
    if isinstance(node, ast.match_case):
        return lines_in(node.pattern)
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if not body:
        return lines_in(node)
    first = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
    start = min(one.lineno for one in (first, *getattr(first, "decorator_list", ())))
    return range(node.lineno, max(start, node.lineno + 1))
