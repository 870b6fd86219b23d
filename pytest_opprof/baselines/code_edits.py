"""Which statements of Python sources are new or edited since an older version of them.

Comments, layout, docstrings, annotations and names of variables make no difference, and a function or a class
may move to another place or file.
"""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

# Two functions or classes that share at least this part of their statements are one that was renamed.
_SAME = 0.5
_MOST_PAIRS = 40_000
_FUNCTION: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_BLOCKS: Final = ("body", "handlers", "cases", "orelse", "finalbody")
# A statement runs otherwise inside of these; not inside of `with` or `try`.
_BRANCHES: Final = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.match_case, ast.ExceptHandler)
_IGNORED: Final = frozenset({"ctx", "annotation", "returns", "type_comment", "type_params", "kind", "simple"})
_Block: TypeAlias = "ast.stmt | ast.ExceptHandler | ast.match_case"
_ScopeNode: TypeAlias = "ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef"
_Part: TypeAlias = "tuple[object, tuple[str, ...], range]"
_Renamed: TypeAlias = "tuple[str, str]"


class CodeEdits(NamedTuple):
    """The edits of a file.

    Attributes:
        lines: The numbers of new and edited lines.
        cut: The functions that lost statements, and got none there.
        decorated: The functions whose decorators changed.
    """

    lines: frozenset[int]
    cut: frozenset[str] = frozenset()
    decorated: frozenset[str] = frozenset()


class _Statement(NamedTuple):
    """A statement without the ones inside it, or a signature, or a decorator.

    Attributes:
        shape: Its syntax without its variables.
        names: The variables in their order, each with whether the statement binds it.
    """

    shape: str
    names: tuple[tuple[str, bool], ...]
    lines: range


class _Key(NamedTuple):
    file: str
    name: str  # qualified; empty for a module
    turn: int  # of scopes with one name, such as a property's


@dataclass
class _Scope:
    """A module, class or function.

    Attributes:
        around: The scopes around it.
        file_text: The lines of its file, without indentation.
        text: Its own lines, with the scopes inside it.
        parts: Its statements, without those of the scopes inside it: syntax, the branches around it, lines.
    """

    key: _Key
    kind: type[ast.AST]
    around: tuple[_Key, ...]
    file_text: Sequence[str]
    text: Sequence[str]
    parts: list[_Part] = field(default_factory=list)
    decorator_parts: list[_Part] = field(default_factory=list)

    @cached_property
    def statements(self) -> list[_Statement]:
        return [self._statement(*part) for part in self.parts]

    @cached_property
    def decorators(self) -> list[_Statement]:
        return [self._statement(*part) for part in self.decorator_parts]

    def _statement(self, node: object, path: Iterable[str], lines: range) -> _Statement:
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            node = ast.Assign(targets=[node.target], value=node.value)
        names: list[tuple[str, bool]] = []
        try:
            shape = _shape(node, names)
        except RecursionError:  # a sum of hundreds of terms
            names, shape = [], "\n".join(self.file_text[line - 1] for line in lines)
        return _Statement(f"{'/'.join(path)}:{shape}", tuple(names), lines)

    @property
    def own_name(self) -> str:
        return self.key.name.rpartition(".")[2]

    @cached_property
    def counts(self) -> Counter[Hashable]:
        return Counter(map(_exactly, self.statements))

    def likeness(self, other: _Scope) -> float:
        """The part of the statements that both have."""
        return (self.counts & other.counts).total() / (max(self.counts.total(), other.counts.total()) or 1)


def edits_between(base: Mapping[str, bytes], head: Mapping[str, bytes]) -> dict[str, CodeEdits]:
    """The edits by file of the head.

    Args:
        base: The older sources, by file.
        head: The newer ones, of all files that differ. If Python cannot read a file on either side, the lines
            that are nowhere in the older one are edited.
    """
    before, after = ({file: _scopes(file, source) for file, source in side.items()} for side in (base, head))
    unread = {file for side in (before, after) for file, scopes in side.items() if scopes is None}
    old, new = (
        {one.key: one for file, scopes in side.items() if file not in unread for one in scopes or ()}
        for side in (before, after)
    )
    pairs = _pairs(old, new)
    compared: dict[_Key, _Comparison] = {}
    for key, scope in new.items():
        renamed = frozenset[_Renamed]().union(*(compared[one].renamed for one in scope.around))
        compared[key] = _Comparison(pairs.get(key), scope, renamed)
    by_file: dict[str, list[_Comparison]] = {file: [] for file in head}
    for key, comparison in compared.items():
        by_file[key.file].append(comparison)
    return {
        file: _of_text(base.get(file, b""), head[file])
        if file in unread
        else CodeEdits(
            lines=frozenset(line for one in scopes for line in one.lines()),
            cut=frozenset(one.function for one in scopes if one.is_cut),
            decorated=frozenset(one.function for one in scopes if one.is_decorated_anew),
        )
        for file, scopes in by_file.items()
    }


class _Comparison:
    """A scope beside its older version, if it has one.

    Attributes:
        function: Its qualified name.
        renamed: Variables with another name, here or around it: the old name and the new one.
    """

    def __init__(self, base: _Scope | None, head: _Scope, renamed: frozenset[_Renamed]) -> None:
        self.function = head.key.name
        self._is_function = base is not None and issubclass(head.kind, _FUNCTION)
        self._base, self._head = base or replace(head, parts=[], decorator_parts=[], text=()), head
        self._regions = (
            [] if self._base.text == head.text else _regions(self._base.statements, head.statements)
        )
        alike = [pair for region in self._regions for pair in _alike(*region)]
        # A new name is given where it is bound. Without that, a statement takes another variable.
        self.renamed = renamed | {pair for both in alike for pair in _given(*both)}
        self._same = {id(one) for both in alike if _renamed(*both) <= self.renamed for one in both}

    @property
    def is_decorated_anew(self) -> bool:
        if not self._is_function or self._base.text == self._head.text:
            return False
        old, new = ([*map(_exactly, scope.decorators)] for scope in (self._base, self._head))
        return old != new

    @property
    def is_cut(self) -> bool:
        """Whether statements are gone from a place where none is new."""
        differs = [[any(map(self._differs, part)) for part in region] for region in self._regions]
        return self._is_function and any(old and not new for old, new in differs)

    def lines(self) -> Iterator[int]:
        """The edited lines: of a statement of several lines those that are not in what it replaced."""
        known = set(map(_exactly, self._base.decorators))
        yield from (line for one in self._head.decorators if _exactly(one) not in known for line in one.lines)
        for old, new in self._regions:
            gone = Counter(
                self._base.file_text[line - 1] for one in filter(self._differs, old) for line in one.lines
            )
            for statement in filter(self._differs, new):
                yield from self._lines_of(statement, gone)

    def _lines_of(self, statement: _Statement, gone: Counter[str]) -> list[int]:
        edited = []
        for line in statement.lines:
            text = self._head.file_text[line - 1]
            if gone[text]:
                gone[text] -= 1
            elif text:
                edited.append(line)
        return edited or [statement.lines.start]  # if it only lost lines

    def _differs(self, statement: _Statement) -> bool:
        return id(statement) not in self._same


def _exactly(one: _Statement) -> Hashable:
    return one.shape, tuple(name for name, _ in one.names)


def _by_shape(one: _Statement) -> Hashable:
    return one.shape


def _aligned(
    base: Sequence[_Statement], head: Sequence[_Statement], key: Callable[[_Statement], Hashable]
) -> Sequence[tuple[str, int, int, int, int]]:
    return SequenceMatcher(None, [*map(key, base)], [*map(key, head)], autojunk=False).get_opcodes()


def _regions(
    base: Sequence[_Statement], head: Sequence[_Statement]
) -> list[tuple[Sequence[_Statement], Sequence[_Statement]]]:
    """What differs between two lists of statements, with what it replaced."""
    return [
        (base[low:high], head[low_after:high_after])
        for tag, low, high, low_after, high_after in _aligned(base, head, _exactly)
        if tag != "equal"
    ]


def _alike(base: Sequence[_Statement], head: Sequence[_Statement]) -> Iterator[tuple[_Statement, _Statement]]:
    """Pairs of statements that differ in variables alone."""
    for tag, low, high, low_after, high_after in _aligned(base, head, _by_shape):
        if tag == "equal":
            yield from zip(base[low:high], head[low_after:high_after], strict=True)


def _renamed(old: _Statement, new: _Statement) -> frozenset[_Renamed]:
    pairs = zip(old.names, new.names, strict=True)
    return frozenset((before, after) for (before, _), (after, _) in pairs if before != after)


def _given(old: _Statement, new: _Statement) -> Iterator[_Renamed]:
    pairs = zip(old.names, new.names, strict=True)
    return ((before, after) for (before, _), (after, is_bound) in pairs if is_bound)


def _pairs(base: Mapping[_Key, _Scope], head: Mapping[_Key, _Scope]) -> dict[_Key, _Scope]:
    """By scope of the head: its older version, which had another name or file if the clearest one is left."""
    found = {key: base[key] for key in head if key in base}
    old = [scope for key, scope in base.items() if key not in found]
    new = [scope for key, scope in head.items() if key not in found]
    ranked = []
    for scope in new if len(old) * len(new) <= _MOST_PAIRS else ():
        for one in (one for one in old if one.kind is scope.kind):
            is_same, likeness = one.key[1:] == scope.key[1:] and scope.key.name, one.likeness(scope)
            is_namesake = one.own_name == scope.own_name and one.key.file == scope.key.file
            if is_same or is_namesake or likeness >= _SAME:
                ranked.append((not is_same, -likeness, not is_namesake, scope.key, one.key))
    taken = set()
    for *_, new_key, old_key in sorted(ranked):
        if new_key not in found and old_key not in taken:
            found[new_key] = base[old_key]
            taken.add(old_key)
    return found


def _scopes(file: str, source: bytes) -> list[_Scope] | None:
    """The scopes of a file, outer ones first; None if Python cannot read it."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of the file's own escapes and comparisons
            module = ast.parse(source)
        return list(_Reader(file, source).read(module))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Reader:
    """Reads the scopes of a module."""

    def __init__(self, file: str, source: bytes) -> None:
        self._file = file
        self._lines = [line.rstrip() for line in source.decode("utf-8", "replace").split("\n")]
        self._stripped = [line.strip() for line in self._lines]
        self._turns = Counter[str]()
        self._found: list[_Scope] = []

    def read(self, module: ast.Module) -> list[_Scope]:
        self._read_scope(module, "", ())
        return self._found

    def _read_scope(self, node: _ScopeNode, name: str, around: tuple[_Key, ...]) -> None:
        key = _Key(self._file, name, self._turns[name])
        self._turns[name] += 1
        scope = _Scope(key, type(node), around, self._stripped, self._text_of(node))
        self._found.append(scope)
        if not isinstance(node, ast.Module):
            scope.decorator_parts = [(one, (), _lines(one)) for one in node.decorator_list]
            parts: Sequence[ast.AST] = (
                [*node.bases, *node.keywords] if isinstance(node, ast.ClassDef) else [node.args]
            )
            scope.parts.append((parts, ("signature",), _head(node)))
        inner = f"{name}.<locals>." if isinstance(node, _FUNCTION) else f"{name}." if name else ""
        inside: list[tuple[_Block, tuple[str, ...]]] = [(one, ()) for one in reversed(node.body)]
        while inside:
            one, path = inside.pop()
            if isinstance(one, (*_FUNCTION, ast.ClassDef)):
                self._read_scope(one, inner + one.name, (*around, key))
                continue
            if not _does_nothing(one):
                scope.parts.append((one, path, _head(one)))
            for block in reversed(_BLOCKS):
                below = (*path, type(one).__name__, block) if isinstance(one, _BRANCHES) else path
                inside += [(child, below) for child in reversed(getattr(one, block, ()))]

    def _text_of(self, node: _ScopeNode) -> list[str]:
        """Its lines, with indentation relative to its own."""
        if isinstance(node, ast.Module):
            return self._lines
        start = min(one.lineno for one in (node, *node.decorator_list))
        return [line[node.col_offset :] for line in self._lines[start - 1 : node.end_lineno]]


def _does_nothing(one: _Block) -> bool:
    """Docstrings, and annotations without a value."""
    return (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)) or (
        isinstance(one, ast.AnnAssign) and one.value is None
    )


def _shape(node: object, names: list[tuple[str, bool]]) -> str:
    """The syntax of a node without its variables, which are added to `names`."""
    match node:
        case ast.Name(id=name, ctx=context):
            names.append((name, not isinstance(context, ast.Load)))
            return "$"
        case ast.arg(arg=name):
            names.append((name, True))
            return "$"
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords):
            return f"{name}({_shape(arguments, names)}, {_shape(keywords, names)})"
        case ast.AST():
            is_block = isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case))
            parts = (
                _shape(value, names)
                for name, value in ast.iter_fields(node)
                if name not in _IGNORED and not (is_block and name in _BLOCKS)
            )
            return f"{type(node).__name__}({', '.join(parts)})"
        case list():
            return f"[{', '.join(_shape(one, names) for one in node)}]"
        case _:
            return repr(node)


def _lines(node: ast.expr | ast.pattern | ast.stmt | ast.ExceptHandler) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _head(node: _Block) -> range:
    """The lines of a statement up to its body."""
    if isinstance(node, ast.match_case):
        return _lines(node.pattern)
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if not body:
        return _lines(node)
    first = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
    start = min(one.lineno for one in (first, *getattr(first, "decorator_list", ())))
    return range(node.lineno, max(start, node.lineno + 1))


def _of_text(base: bytes, head: bytes) -> CodeEdits:
    known = {line.strip() for line in base.split(b"\n")}
    lines = enumerate(head.split(b"\n"), start=1)
    return CodeEdits(frozenset(number for number, line in lines if line.strip() not in {*known, b""}))
