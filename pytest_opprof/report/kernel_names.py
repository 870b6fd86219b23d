"""Shorten names of CUDA's kernels, C++ with all template arguments, to a terminal's line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

MOST_COLUMNS = 100
_DOTS = "..."
_OPEN, _CLOSE = "<({[", ">)}]"
_ANONYMOUS = r"\(anonymous namespace\)"
_NAMESPACE = re.compile(rf"(?:\w+|{_ANONYMOUS})::")
_PARTS = re.compile(rf"({_ANONYMOUS}|[{re.escape(_OPEN + _CLOSE)}])")


def short_names(names: Iterable[str]) -> list[str]:
    """Each name shortened, or whole if another would look the same."""
    whole = list(names)
    short = [short_name(name) for name in whole]
    how_many = Counter(dict(zip(whole, short, strict=True)).values())
    return [one if how_many[one] == 1 else name for name, one in zip(whole, short, strict=True)]


def short_name(name: str) -> str:
    """A name of at most `MOST_COLUMNS` if possible: without parameters, innermost arguments as dots.

    >>> kernel = "at::native::elementwise_kernel<4, at::native::AddFunctor<float>, std::array<char*, 3ul> >"
    >>> short_name(f"void {kernel}(int, at::native::AddFunctor<float>, std::array<char*, 3ul>)")
    'at::native::elementwise_kernel<4, AddFunctor<float>, array<char*, 3ul> >'
    """
    if len(name) <= MOST_COLUMNS or not name.endswith((")", ">")):
        return name
    plain, bracket, arguments = _without_parameters(name.removeprefix("void ")).partition("<")
    text = plain + bracket + _NAMESPACE.sub("", arguments)
    for depth in range(max(_depths(text)), 0, -1):
        if len(text) <= MOST_COLUMNS:
            break
        text = _folded(text, depth)
    return text


def _without_parameters(name: str) -> str:
    depth = 0
    for at in range(len(name) - 1, 0, -1):
        depth += (name[at] in _CLOSE) - (name[at] in _OPEN)
        if depth == 0:
            return name[:at] if name[at] == "(" else name
    return name


def _depths(text: str) -> Iterator[int]:
    depth = 0
    for char in text:
        depth += (char in _OPEN) - (char in _CLOSE)
        yield depth


def _folded(text: str, deepest: int) -> str:
    """The text with dots for parts inside so many brackets."""
    kept: list[str] = []
    depth = 0
    for part in filter(None, _PARTS.split(text)):
        depth += part in _OPEN
        if depth < deepest or (depth == deepest and part in _OPEN + _CLOSE):
            kept.append(part)
        elif kept[-1] != _DOTS:
            kept.append(_DOTS)
        depth -= part in _CLOSE
    return "".join(kept)
