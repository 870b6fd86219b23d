"""Decode argument blocks of named values (``native/src/core/fields.h``)."""

from __future__ import annotations

import enum
import json
import struct
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from pytest_opprof.capture.names import name_text

FieldValue: TypeAlias = str | int | float | bool | list[Any]

_ARGS_FIELDS: Final = 4


class _Type(enum.IntEnum):
    NAME = 1
    COLOR = 2
    BOOL = 3
    SIGNED = 4
    UNSIGNED = 5
    DOUBLE = 6
    TEXT = 7
    JSON = 8


_TEXTS: Final = frozenset({_Type.TEXT, _Type.JSON})
_NUMBERS: Final = {_Type.SIGNED: "q", _Type.UNSIGNED: "Q", _Type.DOUBLE: "d"}


def decode_fields(block: memoryview[int]) -> dict[str, FieldValue]:
    """The values of a block by name; empty for a block of another kind.

    The last value of a repeated key wins. A colour is ``#aarrggbb``.
    """
    if block[0] & 0xFF != _ARGS_FIELDS:
        return {}
    words = block[1 : 1 + (block[0] >> 8)]
    return {name_text(key): _value(kind, payload) for key, kind, payload in _fields(words)}


def decode_counters(block: memoryview[int]) -> dict[str, int]:
    """The values of a block that are single integers."""
    return {name: value for name, value in decode_fields(block).items() if isinstance(value, int)}


def _fields(words: memoryview[int]) -> Iterator[tuple[int, _Type, bytes]]:
    at = 0
    while at < len(words):
        key, kind, count = words[at], _Type(words[at + 1] & 0xFF), words[at + 1] >> 8
        size = count if kind in _TEXTS else 8 * count if kind in _NUMBERS else 4
        end = at + 2 + (size + 3) // 4
        yield key, kind, bytes(words[at + 2 : end])[:size]
        at = end


def _value(kind: _Type, payload: bytes) -> FieldValue:
    if kind in _TEXTS:
        text = payload.decode("utf-8", "backslashreplace")
        return text if kind is _Type.TEXT else json.loads(text)
    if kind in _NUMBERS:
        numbers = list(struct.unpack(f"={len(payload) // 8}{_NUMBERS[kind]}", payload))
        return numbers[0] if len(numbers) == 1 else numbers
    (word,) = struct.unpack("=I", payload)
    if kind is _Type.COLOR:
        return f"#{word:08x}"
    return bool(word) if kind is _Type.BOOL else name_text(word)
