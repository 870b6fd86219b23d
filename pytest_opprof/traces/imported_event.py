"""What a trace file says of an event beyond its columns, by the names of Kineto's methods."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class ImportedEvent:
    """The arguments of an event, asked for as Kineto's events are.

    It has only those methods of theirs whose answers are in a file's ``args``.

    Args:
        args: As the file has them.
    """

    __slots__ = ("_args",)

    def __init__(self, args: Mapping[str, Any]) -> None:
        self._args = args

    def extra_meta(self) -> dict[str, str]:
        """All arguments as JSON text."""
        return {key: json.dumps(value) for key, value in self._args.items()}

    def external_id(self) -> int:
        """Kineto's number of the op that caused it; 0 for none."""
        return self._number("External id", 0)

    def python_id(self) -> int:
        """Number of a Python call; -1 for none."""
        return self._number("Python id", -1)

    def python_parent_id(self) -> int:
        """Number of the call around it; -1 for none."""
        return self._number("Python parent id", -1)

    def python_module_id(self) -> int:
        """Number of the module called; -1 for none."""
        return self._number("Python module id", -1)

    def stack(self) -> list[str]:
        """The calls it was made from, where the file says so."""
        text = self._args.get("Call stack")
        return text.split(";") if isinstance(text, str) and text else []

    def _number(self, key: str, otherwise: int) -> int:
        value = self._args.get(key)
        return value if isinstance(value, int) else otherwise
