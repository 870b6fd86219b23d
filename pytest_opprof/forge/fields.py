"""What an event or an answer of an API says, field by field, each of the type that it must have."""

from __future__ import annotations

from typing import Any, Final

from pytest_opprof.errors import ForgeError

_LIMIT: Final = 10**18  # what a marker in a comment has room for


class Fields:
    """An object of somebody else's JSON.

    Args:
        value: What the JSON parser gave.
        where: What an error calls it: a file, or what was asked.
    """

    def __init__(self, value: Any, *, where: str) -> None:
        self._value = value
        self._where = where

    def text(self, *path: str) -> str:
        """The text at a place.

        Raises:
            ForgeError: There is none.
        """
        value = self._at(path)
        if not isinstance(value, str):
            raise self._lacks(path, "text")
        return value

    def number(self, *path: str) -> int:
        """The whole number at a place: an id or a size, which is not negative and has 18 digits at most.

        Raises:
            ForgeError: There is none.
        """
        value = self._at(path)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _LIMIT:
            raise self._lacks(path, "number")
        return value

    def items(self, *path: str) -> list[Fields]:
        """The objects of the list at a place.

        Raises:
            ForgeError: There is no list.
        """
        value = self._at(path)
        if not isinstance(value, list):
            raise self._lacks(path, "list")
        return [Fields(item, where=f"{self._where}{_dotted(path)}[{at}]") for at, item in enumerate(value)]

    def inside(self, *path: str) -> Fields:
        """What stands at a place, to be read further; whether it is an object shows there."""
        return Fields(self._at(path), where=f"{self._where}{_dotted(path)}")

    def has(self, *path: str) -> bool:
        """Whether there is anything but null at a place."""
        return self._at(path) is not None

    def is_set(self, *path: str) -> bool:
        """Whether there is a true at a place; nothing at all is false."""
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
