"""The names that decide how often a line of a Python source runs."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from pytest_opprof.baselines.code_scopes import FUNCTION, lines_in

_BLOCKS: Final = ("body", "handlers", "cases", "orelse", "finalbody")
_BINDING: Final = (ast.Assign, ast.AnnAssign, ast.AugAssign)
_JUMP: Final = (ast.Return, ast.Break, ast.Continue)
# What a line's own statement names seldom decides how often it runs.
OWN: Final = 3
_MOST_STEPS: Final = 2


def deciding_names(module: ast.Module, line: int) -> Mapping[str, int]:
    """The names that decide how often a line runs, each with its distance: 0 for the nearest.

    These are what the loops and branches around the line test, and the branches before it that may leave the
    loop or the function. What the same function binds to these names is further away, and so is what the
    line's own statement names.
    """
    around = (node for node in ast.walk(module) if isinstance(node, FUNCTION) and line in lines_in(node))
    function = max(around, key=lambda node: node.lineno, default=module)
    found: dict[str, int] = {}

    def add(names: Iterable[str], distance: int) -> None:
        found.update((name, distance) for name in names if distance < found.get(name, distance + 1))

    for part, distance in _tests(function.body, line):
        add(names_in(part), distance)
    bindings = list(_bindings(function))
    for _ in range(_MOST_STEPS):
        for bound, value in bindings:
            distances = [found[name] for name in bound if name in found]
            if distances:
                add(names_in(value), min(distances) + 1)
    return found


def names_in(node: ast.AST) -> Iterator[str]:
    """The names of variables and attributes in an expression."""
    for one in ast.walk(node):
        if isinstance(one, (ast.Name, ast.Attribute)):
            yield one.id if isinstance(one, ast.Name) else one.attr


def bound_names(node: object, lines: Collection[int]) -> frozenset[str] | None:
    """What a statement binds, or the arguments with defaults on `lines` of a signature; None if more."""
    if isinstance(node, _BINDING):
        stored = list(_stored(node))
        is_more = any(isinstance(one, ast.Subscript) for one in stored)
        return None if is_more else frozenset(name for one in stored for name in _own_name(one))
    if isinstance(node, list) and node and isinstance(node[0], ast.arguments):
        pairs = _defaults(node[0])
        return frozenset(one.arg for one, value in pairs if {one.lineno, *lines_in(value)} & {*lines})
    return None


def is_leaving(node: ast.AST) -> bool:
    """Whether a statement may leave the loop or the function around it."""
    return any(isinstance(one, _JUMP) for one in ast.walk(node))


def _tests(block: Iterable[ast.AST], line: int) -> Iterator[tuple[ast.AST, int]]:
    """The expressions that decide whether a line of a block runs, with their distance."""
    for node in block:
        if isinstance(node, ast.match_case):
            yield from _tests(node.body, line)
        elif isinstance(node, (ast.stmt, ast.ExceptHandler)) and line in lines_in(node):
            yield from _tests_of(node, line)
        elif not isinstance(node, (*FUNCTION, ast.ClassDef)):
            inside = (one for one in ast.walk(node) if isinstance(one, (ast.If, ast.While)))
            yield from ((one.test, 0) for one in inside if is_leaving(one))


def _tests_of(node: ast.stmt | ast.ExceptHandler, line: int) -> Iterator[tuple[ast.AST, int]]:
    parts = [getattr(node, name, None) for name in ("test", "iter", "subject")]
    heads = [part for part in parts if isinstance(part, ast.expr)]
    blocks = [block for name in _BLOCKS if (block := getattr(node, name, None))]
    if blocks and not any(line in lines_in(head) for head in heads):
        yield from ((head, 0) for head in heads)
        yield from ((item.context_expr, OWN) for item in getattr(node, "items", ()))
        for block in blocks:
            yield from _tests(block, line)
        return
    value = node.value if isinstance(node, _BINDING) else None
    own: list[ast.AST] = [*heads] or [value or node]
    for one in (inner for part in own for inner in ast.walk(part)):
        if isinstance(one, ast.comprehension):
            yield from ((part, 0) for part in (one.iter, *one.ifs))
    yield from ((part, OWN) for part in own)


def _bindings(function: ast.AST) -> Iterator[tuple[list[str], ast.expr]]:
    """What a function binds, with the expression that it binds to it."""
    if isinstance(function, FUNCTION):
        yield from (([one.arg], value) for one, value in _defaults(function.args))
    for node in ast.walk(function):
        value = getattr(node, "iter" if isinstance(node, (ast.For, ast.AsyncFor)) else "value", None)
        if isinstance(node, (*_BINDING, ast.NamedExpr, ast.For, ast.AsyncFor)) and value is not None:
            yield [name for one in _stored(node) for name in _own_name(one)], value


def _stored(node: ast.AST) -> Iterator[ast.AST]:
    """The variables, attributes and items that a statement binds."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
    for one in (inner for target in targets for inner in ast.walk(target)):
        if isinstance(getattr(one, "ctx", None), ast.Store):
            yield one


def _own_name(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    return [node.attr] if isinstance(node, ast.Attribute) else []


def _defaults(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    """The arguments that have a default."""
    positional = [*arguments.posonlyargs, *arguments.args]
    yield from zip(reversed(positional), reversed(arguments.defaults), strict=False)
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    yield from ((one, value) for one, value in named if value is not None)
