"""Decode the arguments of events: inputs of torch ops (`event.h`), and named values (`fields.h`)."""

from __future__ import annotations

import enum
import functools
import itertools
import json
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pytest_opprof.capture.native import lib
from pytest_opprof.capture.native_calls import name_text, text_at

_ARGS_TEXT: Final = 1
_ARGS_TORCH: Final = 2
_ARGS_FIELDS: Final = 4
_ARGS_INPUT: Final = 10
_FORWARD_WORDS: Final = 2
_WORK_WORDS: Final = 3
_FLOPS_WORDS: Final = 3
_OVERLOAD_WORDS: Final = 2
_IDENTITY_LAYOUT: Final = "=QQiiq"

FieldValue: TypeAlias = str | int | float | bool | list[Any]

# Not the user's keywords: our `_RecordFunctionFast` keeps its inputs under these keys, and the observer the
# modules of TorchScript.
INPUT_KEYS: Final = frozenset({"Input Dims", "Input type", "Concrete Inputs", "Module Hierarchy"})


class Tag(enum.IntEnum):
    """What a token is."""

    OTHER = 0
    TENSOR = 1
    TENSOR_WIDE = 2
    UNDEFINED = 3
    TENSOR_LIST = 4
    INT = 5
    DOUBLE = 6
    BOOL = 7
    INT_LIST = 8
    DOUBLE_LIST = 9
    BOOL_LIST = 10
    TEXT = 11
    NONE = 12
    CUT = 13
    TENSOR_UNSTRIDED = 14
    IDENTITY = 15
    OVERLOAD = 16
    KEYWORDS = 17
    WORK = 18
    FLOPS = 19


_TENSORS: Final = frozenset({Tag.TENSOR, Tag.TENSOR_WIDE, Tag.TENSOR_UNSTRIDED})
_SCALARS: Final = frozenset({Tag.INT, Tag.DOUBLE, Tag.BOOL})
_SCALAR_LISTS: Final = frozenset({Tag.INT_LIST, Tag.DOUBLE_LIST, Tag.BOOL_LIST})


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What an op was given; each list has one entry per input."""

    shapes: list[Any]  # sizes of a tensor, a list of sizes for a tensor list, else []
    strides: list[Any]  # the same for strides, in elements
    dtypes: list[str]  # kineto's names: "float", "long int", "TensorList", "Scalar", "ScalarList" or ""
    concrete: list[Any]  # the values of scalars and short scalar lists, else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One input or output, or an addition to the one before (native/src/core/event.h)."""

    tag: Tag
    dtype: int
    length: int
    values: tuple[Any, ...]


def decode_text(block: memoryview[int]) -> str | None:
    """The text of a block that holds text, else None."""
    if block[0] & 0xFF not in {_ARGS_TEXT, _ARGS_INPUT}:
        return None
    length = block[1]
    return bytes(block[2 : 2 + (length + 3) // 4])[:length].decode("utf-8", "replace")


def decode_inputs(block: memoryview[int]) -> Inputs | None:
    """The inputs in a torch op's block; None for other blocks, and if shapes were not recorded.

    A range's text is an input without shape, type or value, as in torch.
    """
    if block[0] & 0xFF == _ARGS_INPUT:
        return Inputs(shapes=[[]], strides=[[]], dtypes=[""], concrete=[None])
    words = input_words(block)
    if words is None:
        return None
    inputs = Inputs(shapes=[], strides=[], dtypes=[], concrete=[])
    tokens = (token for token in tokens_of(words) if token.tag is not Tag.IDENTITY)
    for token in tokens:
        sizes: list[Any]
        strides: list[Any]
        if token.tag is Tag.TENSOR_LIST:
            members = list(itertools.islice(tokens, token.length))
            pairs = [_sizes(member) for member in members]
            sizes, strides = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        else:
            sizes, strides = _sizes(token)
        inputs.shapes.append(sizes)
        inputs.strides.append(strides)
        inputs.dtypes.append(_dtype(token))
        inputs.concrete.append(concrete(token))
    return inputs


def input_words(block: memoryview[int]) -> memoryview[int] | None:
    """The words of a torch op's inputs in its block; None if there are none."""
    if block[0] & 0xFF != _ARGS_TORCH:
        return None
    words = _without_overload(block)
    if len(words) and words[0] & 0xFF == Tag.KEYWORDS:
        words = words[1 + (words[0] >> 16) :]
    return words if len(words) else None


def keyword_words(block: memoryview[int]) -> memoryview[int] | None:
    """The block of named values (`fields`) in a torch op's block; None if there is none."""
    words = _without_overload(block) if block[0] & 0xFF == _ARGS_TORCH else block[:0]
    return words[1 : 1 + (words[0] >> 16)] if len(words) and words[0] & 0xFF == Tag.KEYWORDS else None


def _without_overload(block: memoryview[int]) -> memoryview[int]:
    words = block[1 + _FORWARD_WORDS : 1 + (block[0] >> 8)]
    if len(words) and words[0] & 0xFF == Tag.WORK:
        words = words[_WORK_WORDS:]
    if len(words) and words[0] & 0xFF == Tag.FLOPS:
        words = words[_FLOPS_WORDS:]
    return words[_OVERLOAD_WORDS:] if len(words) and words[0] & 0xFF == Tag.OVERLOAD else words


def tokens_of(words: memoryview[int]) -> Iterator[Token]:
    """The tokens of a block, up to where it was cut."""
    at = 0
    while at < len(words):
        tag, dtype, length = Tag(words[at] & 0xFF), words[at] >> 8 & 0xFF, words[at] >> 16
        if tag is Tag.CUT:
            return
        layout = _LAYOUTS[tag](length) if tag in _LAYOUTS else "="  # no payload
        size = struct.calcsize(layout)
        payload = bytes(words[at + 1 : at + 1 + (size + 3) // 4])[:size]
        yield Token(tag=tag, dtype=dtype, length=length, values=struct.unpack(layout, payload))
        at += 1 + (size + 3) // 4


# The payload's layout for `struct`, from the token's length.
_LAYOUTS: Final[Mapping[Tag, Callable[[int], str]]] = {
    Tag.TENSOR: lambda rank: f"={2 * rank}I",
    Tag.TENSOR_WIDE: lambda rank: f"={2 * rank}q",
    Tag.TENSOR_UNSTRIDED: lambda rank: f"={rank}q",
    Tag.INT: lambda _: "=q",
    Tag.DOUBLE: lambda _: "=d",
    Tag.INT_LIST: lambda length: f"={length}q",
    Tag.DOUBLE_LIST: lambda length: f"={length}d",
    Tag.BOOL_LIST: lambda length: f"={length}I",
    Tag.TEXT: lambda length: f"={length}s",
    Tag.IDENTITY: lambda _: _IDENTITY_LAYOUT,
}


def _sizes(token: Token) -> tuple[list[int], list[int]]:
    if token.tag in _TENSORS:
        return list(token.values[: token.length]), list(token.values[token.length :])
    return [], []


@functools.cache
def dtype_name(number: int) -> str:
    """Kineto's name for a scalar type of torch, such as ``long int``; "" if it has none."""
    return text_at(lib.op_dtype_name(number))


def _dtype(token: Token) -> str:
    if token.tag in _TENSORS:
        return dtype_name(token.dtype)
    if token.tag is Tag.TENSOR_LIST:
        return "TensorList"
    if token.tag in _SCALARS:
        return "Scalar"
    return "ScalarList" if token.tag in _SCALAR_LISTS else ""


def concrete(token: Token) -> Any:
    """The value of a scalar, a list of scalars or a text; None for anything else."""
    if token.tag is Tag.BOOL:
        return bool(token.length)
    if token.tag in _SCALARS:
        return token.values[0]
    if token.tag is Tag.BOOL_LIST:
        return [bool(value) for value in token.values]
    if token.tag in _SCALAR_LISTS:
        return list(token.values)
    if token.tag is Tag.TEXT:
        text: bytes = token.values[0]
        return text.decode("utf-8", "replace")
    return None


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
    found = {}
    while len(words):
        key, kind, count = words[0], _Type(words[1] & 0xFF), words[1] >> 8
        size = count if kind in _TEXTS else 8 * count if kind in _NUMBERS else 4
        end = 2 + (size + 3) // 4
        found[name_text(key)] = _value(kind, bytes(words[2:end])[:size])
        words = words[end:]
    return found


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
