"""How many floating point operations an op does, from the shapes of its inputs.

A multiplication and the addition that follows it are two. What can only be known at run time, such as masks
and lengths of packed sequences, is not looked at. Sources: torch/csrc/profiler/util.cpp (``computeFlops``)
for what torch.profiler knows, torch/utils/flop_counter.py for the rest, and for the order of arguments
ATen's native_functions.yaml.
"""

# ruff: noqa: PLR2004  # numbers of dimensions and arguments say more as numbers

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Final

from pytest_opprof.capture.inputs import Inputs

Formula = Callable[["Inputs"], int | None]
Shape = Sequence[int]


def matrices(a: Shape, b: Shape) -> int | None:
    """2·n·k·m of a product of matrices, or of two batches of them: torch's mm_flop, bmm_flop."""
    if len(a) != len(b) or len(a) not in {2, 3} or a[-1] != b[-2]:
        return None
    return 2 * prod(a) * b[-1]


def product(a: Shape, b: Shape) -> int | None:
    """2·k for each number of the result of ``torch.matmul``, whose batch dimensions broadcast."""
    if not a or not b:
        return None
    rows, columns = (a[-2] if len(a) > 1 else 1), (b[-1] if len(b) > 1 else 1)
    batch_a, batch_b = list(a[:-2]), list(b[:-2])
    longest = max(len(batch_a), len(batch_b))
    pairs = zip(
        [1] * (longest - len(batch_a)) + batch_a, [1] * (longest - len(batch_b)) + batch_b, strict=True
    )
    return 2 * a[-1] * rows * columns * prod(y if x == 1 else x for x, y in pairs)


def attention(query: Shape, key: Shape, value: Shape) -> int | None:
    """Scores, and their product with the values, each (batch, heads, length, width).

    torch's sdpa_flop_count.
    """
    if not len(query) == len(key) == len(value) == 4:
        return None
    batch, heads, queries, width = query
    return 2 * batch * heads * queries * key[2] * (width + value[3])


def attention_backward(query: Shape, key: Shape, value: Shape) -> int | None:
    """The scores once more, and a product for each gradient: torch's sdpa_backward_flop_count."""
    if not len(query) == len(key) == len(value) == 4:
        return None
    batch, heads, queries, width = query
    return 2 * batch * heads * queries * key[2] * (3 * width + 2 * value[3])


def convolution(
    image: Shape,
    weight: Shape,
    *,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int = 1,
    transposed: bool = False,
) -> int | None:
    """Each number of the weight meets each place of the output (of the input, where transposed) once.

    torch's conv_flop_count; of any rank, with or without a batch dimension.
    """
    rank = len(weight) - 2
    if rank < 1 or groups < 1 or len(image) not in {rank + 1, rank + 2}:
        return None
    sizes = image[-rank:]
    batch = image[0] if len(image) == rank + 2 else 1
    if transposed:
        return 2 * batch * prod(sizes) * prod(weight)
    places = 1
    for at in range(rank):
        reach = _at(dilation, at, 1) * (weight[2 + at] - 1) + 1
        places *= (sizes[at] + 2 * _at(padding, at, 0) - reach) // _at(stride, at, 1) + 1
    return 2 * batch * places * prod(weight)


def _at(values: Shape, place: int, default: int) -> int:
    """One number may stand for all dimensions."""
    if not values:
        return default
    return values[place] if place < len(values) else values[0]


# ---- where an op has its arguments ---------------------------------------------------------------


def _shape(inputs: Inputs, place: int) -> Shape:
    return inputs.shapes[place] if place < len(inputs.shapes) else ()


def _numbers(inputs: Inputs, place: int) -> Shape | None:
    """A list of integers (one stands for itself); None where the input is something else, such as "same"."""
    text = inputs.concrete[place] if place < len(inputs.concrete) else ""
    if not text:
        return None
    value = ast.literal_eval(text)
    numbers = value if isinstance(value, list) else [value]
    return numbers if all(isinstance(number, int) for number in numbers) else None


def _flag(inputs: Inputs, place: int) -> bool:
    return place < len(inputs.concrete) and inputs.concrete[place] == "True"


def _of_matrices(first: int, second: int) -> Formula:
    return lambda inputs: matrices(_shape(inputs, first), _shape(inputs, second))


def _of_product(first: int, second: int) -> Formula:
    return lambda inputs: product(_shape(inputs, first), _shape(inputs, second))


def _linear(inputs: Inputs) -> int | None:
    """2·features for each number of the result: weight is (out, in), or (in)."""
    data, weight = _shape(inputs, 0), _shape(inputs, 1)
    if not data or len(weight) not in {1, 2} or data[-1] != weight[-1]:
        return None
    return 2 * prod(data) * (weight[0] if len(weight) == 2 else 1)


def _elements(inputs: Inputs) -> int | None:
    """One for each element of the first input."""
    is_tensor = bool(inputs.dtypes) and inputs.dtypes[0] not in {"", "Scalar", "ScalarList", "TensorList"}
    return prod(_shape(inputs, 0)) if is_tensor else None


def _torchs_conv2d(inputs: Inputs) -> int | None:
    """As torch.profiler: only of 4 dimensions, with two numbers each for stride, padding and dilation."""
    lists = [_numbers(inputs, place) for place in (3, 4, 5)]
    sound = len(_shape(inputs, 0)) == len(_shape(inputs, 1)) == 4 and all(
        found is not None and len(found) == 2 for found in lists
    )
    return _convolution(stride=3, padding=4, dilation=5, groups=6)(inputs) if sound else None


def _convolution(
    *, stride: int, padding: int, dilation: int | None, groups: int | None, transposed: int | bool = False
) -> Formula:
    """A formula over the places of a convolution's arguments; `transposed` may be the answer itself."""

    def formula(inputs: Inputs) -> int | None:
        strides, paddings = _numbers(inputs, stride), _numbers(inputs, padding)
        dilations = [1] if dilation is None else _numbers(inputs, dilation)
        parts = [1] if groups is None else _numbers(inputs, groups)
        if strides is None or paddings is None or dilations is None or not parts:
            return None
        return convolution(
            _shape(inputs, 0),
            _shape(inputs, 1),
            stride=strides,
            padding=paddings,
            dilation=dilations,
            groups=parts[0],
            transposed=transposed if isinstance(transposed, bool) else _flag(inputs, transposed),
        )

    return formula


def _convolution_backward(inputs: Inputs) -> int | None:
    """A gradient of the input, and one of the weight, cost what the forward cost: torch's conv_backward_flop.

    Arguments: gradient of the output, input, weight, sizes of the bias, stride, padding, dilation,
    transposed, output padding, groups, and which gradients are asked for.
    """
    forward = _convolution(stride=3, padding=4, dilation=5, groups=8, transposed=6)(_without_first(inputs))
    wanted = inputs.concrete[10] if len(inputs.concrete) > 10 else ""
    if forward is None or not wanted:
        return None
    of_input, of_weight, *_ = ast.literal_eval(wanted)
    return forward * (bool(of_input) + bool(of_weight))


def _without_first(inputs: Inputs) -> Inputs:
    return type(inputs)(
        shapes=inputs.shapes[1:],
        strides=inputs.strides[1:],
        dtypes=inputs.dtypes[1:],
        concrete=inputs.concrete[1:],
    )


def _attention(inputs: Inputs) -> int | None:
    return attention(_shape(inputs, 0), _shape(inputs, 1), _shape(inputs, 2))


def _attention_backward(inputs: Inputs) -> int | None:
    return attention_backward(_shape(inputs, 1), _shape(inputs, 2), _shape(inputs, 3))


def _heads_first(shape: Shape) -> Shape:
    return (shape[0], shape[2], shape[1], shape[3]) if len(shape) == 4 else ()


def _lengths_first(formula: Callable[[Shape, Shape, Shape], int | None], first: int) -> Formula:
    """Of (batch, length, heads, width). Packed sequences, of unknown lengths, have 3 dimensions: None."""
    return lambda inputs: formula(*(_heads_first(_shape(inputs, first + at)) for at in range(3)))


TORCHS: Final[Mapping[str, Formula]] = MappingProxyType(
    {
        "aten::mm": _of_matrices(0, 1),
        "aten::addmm": _of_matrices(1, 2),
        "aten::bmm": _of_matrices(0, 1),
        "aten::baddbmm": _of_matrices(1, 2),
        "aten::mul": _elements,
        "aten::add": _elements,
        "aten::conv2d": _torchs_conv2d,
    }
)
_FORWARD = _convolution(stride=3, padding=4, dilation=5, groups=8, transposed=6)
_PLAIN = _convolution(stride=3, padding=4, dilation=5, groups=6)
_TRANSPOSED = _convolution(stride=3, padding=4, dilation=7, groups=6, transposed=True)
_BY_KERNEL_SIZE = _convolution(stride=4, padding=5, dilation=None, groups=None)
FORMULAS: Final[Mapping[str, Formula]] = MappingProxyType(
    {
        **TORCHS,
        "aten::addbmm": _of_matrices(1, 2),
        "aten::_addmm_activation": _of_matrices(1, 2),
        "aten::_int_mm": _of_matrices(0, 1),
        "aten::_scaled_mm": _of_matrices(0, 1),
        "aten::matmul": _of_product(0, 1),
        "aten::mv": _of_product(0, 1),
        "aten::addmv": _of_product(1, 2),
        "aten::dot": _of_product(0, 1),
        "aten::vdot": _of_product(0, 1),
        "aten::linear": _linear,
        "aten::mkldnn_linear": _linear,
        "mkldnn::_linear_pointwise": _linear,
        "aten::conv1d": _PLAIN,
        "aten::conv2d": _PLAIN,
        "aten::conv3d": _PLAIN,
        "aten::conv_transpose1d": _TRANSPOSED,
        "aten::conv_transpose2d": _TRANSPOSED,
        "aten::conv_transpose3d": _TRANSPOSED,
        "aten::convolution": _FORWARD,
        "aten::_convolution": _FORWARD,
        "aten::convolution_overrideable": _FORWARD,
        "aten::mkldnn_convolution": _convolution(stride=4, padding=3, dilation=5, groups=6),
        "mkldnn::_convolution_pointwise": _convolution(stride=4, padding=3, dilation=5, groups=6),
        "aten::cudnn_convolution": _convolution(stride=3, padding=2, dilation=4, groups=5),
        "aten::cudnn_convolution_transpose": _convolution(
            stride=4, padding=2, dilation=5, groups=6, transposed=True
        ),
        "aten::miopen_convolution": _convolution(stride=4, padding=3, dilation=5, groups=6),
        "aten::thnn_conv2d": _BY_KERNEL_SIZE,
        "aten::_slow_conv2d_forward": _BY_KERNEL_SIZE,
        "aten::slow_conv3d": _BY_KERNEL_SIZE,
        "aten::slow_conv3d_forward": _BY_KERNEL_SIZE,
        "aten::convolution_backward": _convolution_backward,
        **dict.fromkeys(
            (
                "aten::scaled_dot_product_attention",
                "aten::_scaled_dot_product_attention_math",
                "aten::_scaled_dot_product_flash_attention",
                "aten::_scaled_dot_product_flash_attention_for_cpu",
                "aten::_scaled_dot_product_efficient_attention",
                "aten::_scaled_dot_product_cudnn_attention",
                "aten::_scaled_dot_product_fused_attention_overrideable",
            ),
            _attention,
        ),
        **dict.fromkeys(
            (
                "aten::_scaled_dot_product_flash_attention_backward",
                "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
                "aten::_scaled_dot_product_efficient_attention_backward",
                "aten::_scaled_dot_product_cudnn_attention_backward",
                "aten::_scaled_dot_product_fused_attention_overrideable_backward",
            ),
            _attention_backward,
        ),
        "aten::_flash_attention_forward": _lengths_first(attention, 0),
        "aten::_efficient_attention_forward": _lengths_first(attention, 0),
        "aten::_flash_attention_backward": _lengths_first(attention_backward, 1),
        "aten::_efficient_attention_backward": _lengths_first(attention_backward, 1),
    }
)
