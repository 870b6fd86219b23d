"""Marks tests without editing them: lines of ``--opprof-mark`` and of the ini key ``opprof_mark``."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import pytest
from _pytest.mark import KeywordMatcher
from _pytest.mark import expression as expressions
from _pytest.mark.expression import Expression

from pytest_opprof.compare.limits import parse_limits
from pytest_opprof.errors import UsageError
from pytest_opprof.metrics import is_pattern, matches
from pytest_opprof.plugin.marker import BY_LINE, check_names, refusal_of
from pytest_opprof.results.names import canonical_node_id

_INVALID: Final = getattr(expressions, "ParseError", SyntaxError)  # pytest 8 has one of its own
_WORD: Final = r"""(?:"([^"]*)"|'([^']*)'|(\S+))"""
_LINE: Final = re.compile(rf"\s*(!?)\s*(-k\s+)?(?!!){_WORD}\s*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class MarkLine:
    """Which tests a line chooses, and their arguments."""

    chooses: Callable[[pytest.Item], bool]
    is_excluding: bool  # it excludes tests that earlier lines chose
    arguments: Mapping[str, Any]


def mark(items: Collection[pytest.Item], lines: Collection[str]) -> list[str]:
    """Give tests the marker; a marker in the code wins, and of several matching lines the last.

    A line is ``[!]PATH|NODE-ID|-k EXPRESSION [ARGUMENTS]``, the weaker first; an invalid one raises
    `UsageError`. A test that cannot have the marker is left alone, because no line named it. Returns the
    lines that choose tests, and match none.
    """
    parsed = [parse_mark(line) for line in lines]
    for item in items:
        if not isinstance(item, pytest.Function) or item.get_closest_marker("profile") or refusal_of(item):
            continue
        last = next((line for line in reversed(parsed) if line.chooses(item)), None)
        if last is not None and not last.is_excluding:
            item.add_marker(pytest.mark.profile(**last.arguments))
            item.stash[BY_LINE] = None
    choosing = [(text, line) for text, line in zip(lines, parsed, strict=True) if not line.is_excluding]
    return [text for text, line in choosing if not any(map(line.chooses, items))]


def parse_mark(line: str) -> MarkLine:
    """Read one line; raises `UsageError` if it is invalid."""
    match = _LINE.fullmatch(line)
    if match is None:
        raise UsageError(f"opprof_mark: {line!r} names no test: write a path, a node id or -k EXPRESSION")
    excludes, is_expression, *words, rest = match.groups()
    word = next(filter(None, words), "")
    if excludes and rest:
        raise UsageError(f"opprof_mark: {line!r} excludes tests, so it cannot have arguments: {rest}")
    arguments = parse_arguments(rest, where=f"opprof_mark: {line!r}")
    check_names(arguments, where=f"opprof_mark: {line!r}")
    return MarkLine(
        chooses=_by_expression(word, line) if is_expression else _by_node_id(word),
        is_excluding=bool(excludes),
        arguments=arguments,
    )


def parse_arguments(text: str, *, where: str) -> Mapping[str, Any]:
    """Read the marker's arguments in Python syntax, such as ``warmup=2, record_shapes=True``."""
    try:
        call = ast.parse(f"profile({text})", mode="eval").body
        words = call.keywords if isinstance(call, ast.Call) and not call.args else []
        values = {word.arg: ast.literal_eval(word.value) for word in words}
    except (SyntaxError, ValueError):
        values = {}
    if text.strip() and (not values or None in values):
        raise UsageError(
            f"{where}: {text!r} are not arguments of the marker; write them as in Python, with literals for "
            "values: warmup=2, record_shapes=True"
        )
    return MappingProxyType({str(name): value for name, value in values.items()})


def suite_arguments(
    profile: str, limits: Collection[str], *, known_ops: Collection[str]
) -> Mapping[str, Any]:
    """Defaults for profiled tests whose marker does not set them; raises `UsageError` if they are invalid.

    `profile` has the marker's arguments as text; `limits` presets, and budgets such as ``METRIC=BOUND``.
    """
    arguments = dict(parse_arguments(profile, where="opprof_profile"))
    check_names(arguments, where="opprof_profile")
    if limits:
        arguments["limits"] = [_budget(limit) for limit in limits]
        parse_limits(arguments["limits"], where="opprof_limits", known_ops=known_ops)
    return arguments


def _budget(text: str) -> str | dict[str, str]:
    """A preset's name, or one budget; ``=`` means at most, like a bare number in the marker."""
    match = re.fullmatch(r"([^<>=]+)(?:=(?!=)|(?=[<>=]))(.+)", text)
    return {match[1].strip(): match[2].strip()} if match else text


def _by_expression(text: str, line: str) -> Callable[[pytest.Item], bool]:
    try:
        expression = Expression.compile(text)
    except _INVALID as error:
        raise UsageError(f"opprof_mark: {line!r} is not a -k expression: {error}") from None
    return lambda item: expression.evaluate(KeywordMatcher.from_item(item))


def _by_node_id(text: str) -> Callable[[pytest.Item], bool]:
    """Matches a path, a node id or its first parts, or a pattern of node ids."""
    wanted = text.rstrip("/").removeprefix("./")
    if wanted == ".":
        return lambda _: True
    if is_pattern(wanted):
        return lambda item: matches(wanted, canonical_node_id(item.nodeid))

    def is_part(item: pytest.Item) -> bool:
        node_id = canonical_node_id(item.nodeid)  # xdist may have added the test's group
        return node_id.startswith(wanted) and node_id[len(wanted) :][:1] in {"", "/", ":", "["}

    return is_part
