"""Kernel names on a terminal; these ran on a GPU."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_opprof.report.kernel_names import MOST_COLUMNS, short_name, short_names

FILL = "at::native::FillFunctor<float>, std::array<char*, 1ul>"
MUL = "at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >"
OPTIMIZER = "at::native::(anonymous namespace)::multi_tensor_apply_kernel"
METADATA = "at::native::(anonymous namespace)::TensorListMetadata<2>"
TANH = (
    "at::native::tanh_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::"
    "{lambda(float)#1}, std::array<char*, 2ul>"
)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("nvjet_sm90_hsh_40x64_64x16_4x2_h_bz_TNN", "nvjet_sm90_hsh_40x64_64x16_4x2_h_bz_TNN"),
        (
            "void create_pivot_v2<512>(int, int*, long*, int)",
            "void create_pivot_v2<512>(int, int*, long*, int)",
        ),
        (
            f"void at::native::vectorized_elementwise_kernel<4, {FILL} >(int, {FILL})",
            "at::native::vectorized_elementwise_kernel<4, FillFunctor<float>, array<char*, 1ul> >",
        ),
        (
            f"void at::native::vectorized_elementwise_kernel<4, {MUL}, std::array<char*, 3ul> >(int, {MUL})",
            "at::native::vectorized_elementwise_kernel<4, BinaryFunctor<...>, array<...> >",
        ),
        (
            f"void at::native::vectorized_elementwise_kernel<4, {TANH} >(int, {TANH})",
            "at::native::vectorized_elementwise_kernel<...>",
        ),
        (
            f"void {OPTIMIZER}<{METADATA}, at::native::Sqrt<float> >({METADATA}, at::native::Sqrt<float>)",
            f"{OPTIMIZER}<TensorListMetadata<2>, Sqrt<float> >",
        ),
        (f"{'_ZN7cutlass6Kernel':x<120}", f"{'_ZN7cutlass6Kernel':x<120}"),
    ],
)
def test_innermost_arguments_are_cut_first(name: str, short: str) -> None:
    assert short_name(name) == short


def test_names_that_would_look_the_same_stay_whole() -> None:
    tanh = f"void at::native::vectorized_elementwise_kernel<4, {TANH} >(int, {TANH})"
    names = [tanh, tanh.replace("#2", "#1"), "aten::tanh", "aten::tanh"]
    assert short_names(names) == names
    assert short_names([tanh, tanh, "aten::tanh"]) == [short_name(tanh)] * 2 + ["aten::tanh"]


@given(st.text("ab:<>(){}[], &*", max_size=2 * MOST_COLUMNS))
def test_any_name_has_a_short_one(name: str) -> None:
    assert bool(short_name(name)) == bool(name)
