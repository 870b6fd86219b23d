"""Match names with `fnmatch` patterns, without backtracking.

A regular expression with many wildcards backtracks: if the name and the pattern have a kilobyte each, as
untrusted input may, one pair takes a millisecond.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# A class, or one character.
_ONE: Final = re.compile(r"\[!?+\]?+[^\]]*+\]|.", re.DOTALL)


def is_pattern(text: str) -> bool:
    """Whether a text is an `fnmatch` pattern rather than a single name."""
    return any(character in text for character in "*?[")


def matches(pattern: str, name: str) -> bool:
    """Whether a name equals the pattern or matches it, respecting case."""
    return pattern == name or (is_pattern(pattern) and _is_like(name, _parts(pattern)))


@dataclass(frozen=True, slots=True)
class _Part:
    """What stands between two stars: `length` characters, as literal text or with classes."""

    length: int
    text: str
    ones: re.Pattern[str] | None

    def stands_at(self, name: str, at: int) -> bool:
        if self.ones is None:
            return name.startswith(self.text, at)
        return self.ones.fullmatch(name, at, at + self.length) is not None

    def first_in(self, name: str, start: int, end: int) -> int:
        """The first place where it stands between `start` and `end`; -1 if there is none."""
        if self.ones is None:
            return name.find(self.text, start, end)
        return next((at for at in range(start, end - self.length + 1) if self.stands_at(name, at)), -1)


def _is_like(name: str, parts: Sequence[_Part]) -> bool:
    first, *others = parts
    if not others:
        return len(name) == first.length and first.stands_at(name, 0)
    *middle, last = others
    at, end = first.length, len(name) - last.length
    if at > end or not (first.stands_at(name, 0) and last.stands_at(name, end)):
        return False
    for part in middle:
        found = part.first_in(name, at, end)
        if found < 0:
            return False
        at = found + part.length
    return True


@functools.lru_cache(maxsize=1024)
def _parts(pattern: str) -> tuple[_Part, ...]:
    ones: list[list[str]] = [[]]
    for one in _ONE.findall(pattern):
        if one == "*":
            ones.append([])
        else:
            ones[-1].append(one)
    return tuple(map(_part, ones))


def _part(ones: Sequence[str]) -> _Part:
    text = "".join(ones)
    is_literal = "?" not in ones and all(len(one) == 1 for one in ones)
    return _Part(len(ones), text, None if is_literal else re.compile(fnmatch.translate(text)))
