"""Many short calls of Python functions: evaluates arithmetic by recursive descent."""

from __future__ import annotations

import operator

_TEXT = "(1 + 2 * (3 - 4) * (5 + 6)) * (7 - 8 * (9 + 10 * (11 - 12))) + 13 * (14 - 15) - (16 + 17) * 18"
_OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}


class _Reader:
    def __init__(self, text: str) -> None:
        self._words = text.replace("(", "( ").replace(")", " )").split()
        self._at = 0

    def _seen(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def _taken(self) -> str:
        self._at += 1
        return self._words[self._at - 1]

    def sum(self) -> int:
        value = self._product()
        while self._seen() in {"+", "-"}:
            value = _OPERATIONS[self._taken()](value, self._product())
        return value

    def _product(self) -> int:
        value = self._factor()
        while self._seen() == "*":
            value = _OPERATIONS[self._taken()](value, self._factor())
        return value

    def _factor(self) -> int:
        word = self._taken()
        if word != "(":
            return int(word)
        value = self.sum()
        self._taken()
        return value


def evaluated(times: int) -> None:
    """Evaluate the text so many times."""
    assert {_Reader(_TEXT).sum() for _ in range(times)} == {eval(_TEXT)}  # noqa: S307  # the text above


if __name__ == "__main__":
    evaluated(16_000)
