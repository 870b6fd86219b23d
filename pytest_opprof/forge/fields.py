"""Read typed fields from the JSON of an event or an API's answer."""

from __future__ import annotations

from typing import Any, Final

from pytest_opprof.errors import ForgeError

_LIMIT: Final = 10**18  # a comment's marker has room for 18 digits


class Fields:
    """A JSON value from outside; what is missing is a ForgeError that says `where`, a file or a request."""

    def __init__(self, value: Any, *, where: str) -> None:
        self._value = value
        self._where = where

    def text(self, *path: str) -> str:
        """The text at a path."""
        value = self._at(path)
        if not isinstance(value, str):
            raise self._lacks(path, "text")
        return value

    def number(self, *path: str) -> int:
        """The integer at a path: an id or a size, not negative, at most 18 digits."""
        value = self._at(path)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _LIMIT:
            raise self._lacks(path, "number")
        return value

    def items(self, *path: str) -> list[Fields]:
        """The entries of the list at a path."""
        value = self._at(path)
        if not isinstance(value, list):
            raise self._lacks(path, "list")
        return [Fields(item, where=f"{self._where}{_dotted(path)}[{at}]") for at, item in enumerate(value)]

    def inside(self, *path: str) -> Fields:
        """The value at a path, not checked until its fields are read."""
        return Fields(self._at(path), where=f"{self._where}{_dotted(path)}")

    def has(self, *path: str) -> bool:
        """Whether the value at a path exists and is not null."""
        return self._at(path) is not None

    def is_set(self, *path: str) -> bool:
        """Whether the value at a path exists and is true."""
        return self._at(path) is True

    def _at(self, path: tuple[str, ...]) -> Any:
        value = self._value
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def _lacks(self, path: tuple[str, ...], what: str) -> ForgeError:
        return ForgeError(f"{self._where}: there is no {what}{' at ' if path else ''}{_dotted(path)[1:]}")


def _dotted(path: tuple[str, ...]) -> str:
    return "".join(f".{part}" for part in path)
