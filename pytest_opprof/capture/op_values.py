"""Decode a torch op's inputs and outputs, value by value, with types and tensors' identities."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pytest_opprof.capture.inputs import Tag, Token, concrete, dtype_name, input_words, tokens_of

_ARGS_TORCH: Final = 2
_ARGS_OUTPUTS: Final = 5

# Bytes of an element, by c10::ScalarType; 1 if not listed.
_ITEM_BYTES: Final = {
    **dict.fromkeys((2, 5, 15, 22, 27), 2),
    **dict.fromkeys((3, 6, 8, 14, 28), 4),
    **dict.fromkeys((4, 7, 9, 29), 8),
    10: 16,
}
# By c10::DeviceType.
_DEVICES: Final = (
    *("cpu", "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip", "fpga", "maia", "xla", "vulkan", "metal"),
    *("xpu", "mps", "meta", "hpu", "ve", "lazy", "ipu", "mtia", "privateuseone"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorValue:
    """A tensor at the beginning or the end of an op."""

    tensor: int  # address of torch's TensorImpl; 0 if unknown. Addresses are reused
    storage: int  # address of its memory; 0 if unknown
    offset: int  # of its first element in the storage, in elements
    elements: int
    item_bytes: int
    device: str  # as torch writes it, such as "cpu" or "cuda:0"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpValue:
    """One value."""

    # as in an execution trace, such as "Tensor(float)", "GenericList[Int,Int]" or "None"; "" if it was not
    # recorded
    type: str
    value: Any  # a number, a text, a `TensorValue`, None, or a list of these
    shape: list[Any]  # sizes of a tensor, a list of them for a list, else []
    strides: list[Any]  # the same, in elements


@dataclass(frozen=True, slots=True)
class TensorIdentity:
    """Which tensor an input is."""

    tensor: int  # address of torch's TensorImpl, which differs between views of one storage
    storage: int  # address of its memory, as `MemoryChange.address` has it; 0 for none
    device_type: int  # torch's number of the kind of device; 0 for the host
    device_index: int  # which device of that kind; -1 for the host


def decode_identities(block: memoryview[int]) -> list[list[TensorIdentity | None]] | None:
    """For each input its tensors: one, those of a list, or none for a number; None as in `decode_inputs`.

    A tensor without its own storage, such as a sparse one, or without a recorded identity is None.
    """
    words = input_words(block)
    if words is None:
        return None
    inputs = []
    pairs = _with_identities(tokens_of(words))
    for token, identity in pairs:
        is_tensor = token.tag in _TENSORS
        members = itertools.islice(pairs, token.length) if token.tag is Tag.TENSOR_LIST else ()
        identities = [identity] if is_tensor else [known for _, known in members]
        inputs.append([None if one is None else TensorIdentity(*one.values[:4]) for one in identities])
    return inputs


def decode_values(block: memoryview[int]) -> list[OpValue]:
    """The op's inputs; empty if they were not recorded."""
    words = input_words(block)
    return [] if words is None else list(_values(words))


def decode_forward_thread(block: memoryview[int]) -> int:
    """Torch's number of the thread that ran the forward op; 0 for none."""
    return block[1] | block[2] << 32 if block[0] & 0xFF == _ARGS_TORCH else 0


def decode_outputs(block: memoryview[int]) -> tuple[int, list[OpValue]]:
    """The id of its schema's text (`name_text`), and its outputs; 0 and empty for other blocks."""
    if block[0] & 0xFF != _ARGS_OUTPUTS:
        return 0, []
    return block[1], list(_values(block[2 : 1 + (block[0] >> 8)]))


def _values(words: memoryview[int]) -> Iterator[OpValue]:
    pairs = _with_identities(tokens_of(words))
    for token, identity in pairs:
        if token.tag is Tag.TENSOR_LIST:
            yield _list([_tensor(*pair) for pair in itertools.islice(pairs, token.length)])
        elif token.tag in _TENSORS:
            yield _tensor(token, identity)
        elif token.tag in _ELEMENTS:
            yield _list([plain_value(_ELEMENTS[token.tag], value) for value in concrete(token)])
        elif token.tag is Tag.OTHER and token.dtype:
            index = token.length if token.length < 1 << 15 else -1
            yield plain_value("Device", device_name(token.dtype - 1, index))
        else:
            yield plain_value(_SCALARS.get(token.tag, ""), concrete(token))


_TENSORS: Final = frozenset({Tag.TENSOR, Tag.TENSOR_WIDE, Tag.TENSOR_UNSTRIDED, Tag.UNDEFINED})
# The types of values, and of a list's elements, as in an execution trace.
_SCALARS: Final = {
    Tag.INT: "Int",
    Tag.DOUBLE: "Double",
    Tag.BOOL: "Bool",
    Tag.NONE: "None",
    Tag.TEXT: "String",
}
_ELEMENTS: Final = {Tag.INT_LIST: "Int", Tag.DOUBLE_LIST: "Double", Tag.BOOL_LIST: "Bool"}


def _with_identities(tokens: Iterator[Token]) -> Iterator[tuple[Token, Token | None]]:
    """Each token, with the identity that follows it, if any."""
    waiting: Token | None = None
    for token in tokens:
        if token.tag is Tag.IDENTITY and waiting is not None:
            yield waiting, token
            waiting = None
            continue
        if waiting is not None:
            yield waiting, None
        waiting = token
    if waiting is not None:
        yield waiting, None


def _list(members: list[OpValue]) -> OpValue:
    return OpValue(
        type=f"GenericList[{','.join(member.type for member in members)}]",
        value=[member.value for member in members],
        shape=[member.shape for member in members],
        strides=[member.strides for member in members],
    )


def _tensor(token: Token, identity: Token | None) -> OpValue:
    sizes, strides = list(token.values[: token.length]), list(token.values[token.length :])
    address, storage, device_type, device_index, offset = identity.values if identity else (0, 0, 0, -1, 0)
    dtype = "" if token.tag is Tag.UNDEFINED else dtype_name(token.dtype)
    known = bool(dtype)
    value = TensorValue(
        tensor=address,
        storage=storage,
        offset=offset,
        elements=math.prod(sizes) if known else 0,
        item_bytes=_ITEM_BYTES.get(token.dtype, 1) if known else 0,
        device=device_name(device_type, device_index) if known else "",
    )
    return OpValue(
        type=f"Tensor({dtype or 'nullptr (uninitialized)'})", value=value, shape=sizes, strides=strides
    )


def plain_value(kind: str, value: object) -> OpValue:
    """A value that is no tensor and no list."""
    return OpValue(type=kind, value=value, shape=[], strides=[])


@functools.cache
def item_bytes() -> dict[str, int]:
    """Bytes of an element by Kineto's name for its type."""
    return {name: _ITEM_BYTES.get(number, 1) for number in range(1 << 8) if (name := dtype_name(number))}


def device_name(device_type: int, index: int) -> str:
    """A device as torch writes it: "cpu", "cuda:0"."""
    name = _DEVICES[device_type] if 0 <= device_type < len(_DEVICES) else f"device type {device_type}"
    return name if index < 0 else f"{name}:{index}"
