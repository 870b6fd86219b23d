"""Names: mangled, hidden, and shared by many events."""

import pytest

from pytest_opprof import StringTable
from pytest_opprof.events.names import demangled, filter_name, filter_stack_entry, rewrite_name, summed_name


@pytest.mark.parametrize(
    ("mangled", "read"),
    [
        ("_ZN2at6native4gemmEv", "at::native::gemm()"),
        ("Pi", "int*"),
        ("aten::add", "aten::add"),
        ("_ZN2at", "_ZN2at"),
        ("", ""),
        ("t", "t"),
        ("Pi\0", "Pi\0"),
        ("日本", "日本"),
        ("\ud800x", "\ud800x"),
    ],
)
def test_table_reads_cxx_names(mangled: str, read: str) -> None:
    table = StringTable()
    assert table[mangled] == read
    assert table == {mangled: read}


def test_our_own_names_are_demangled_only_where_mangled() -> None:
    assert summed_name("Pi") == "Pi"
    assert summed_name("_ZN2at6native4gemmEv") == "at::native::gemm()"


def test_steps_are_one_name_where_asked_for() -> None:
    assert summed_name("ProfilerStep#12") == rewrite_name("ProfilerStep#12", with_wildcard=True)
    assert rewrite_name("ProfilerStep#12") == "ProfilerStep#12"


def test_without_the_cxx_runtime_names_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_opprof.events.names._cxx_demangle", lambda: None)
    assert demangled.__wrapped__("_Z1fv") == "_Z1fv"


def test_helper_ops_are_filtered() -> None:
    assert filter_name("[OutOfMemory]")
    assert not filter_name("aten::add")


def test_frames_of_autograd_are_filtered() -> None:
    assert not filter_stack_entry("torch/autograd/__init__.py(5): backward")
    assert filter_stack_entry("model.py(7): backward")


def test_name_that_would_fill_the_memory_stays_mangled() -> None:
    doubled = "_Z1f1aIiiE" + "".join(f"S_I{part}{part}E" for part in ("S0_", "S1_", "S2_"))
    assert demangled(doubled).startswith("f(a<int, int>, a<a<int, int>")
    # each part doubles the one before it: ninety of them would have more characters than there are atoms
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    parts = [f"S{high}{low}_".replace("S0", "S") for high in digits[:3] for low in digits[:30]]
    exploding = "_Z1f1aIiiE" + "".join(f"S_I{part}{part}E" for part in parts)
    for name in (exploding, exploding * 1_000):
        assert demangled(name) == name


def test_long_names_of_kernels_are_readable() -> None:
    kernel = (
        "_ZN3cub17CUB_200200_750_NS28DeviceReduceSingleTileKernelINS0_18DeviceReducePolicyIfjN6thrust20THRUST_"
        "200302_750_NS4plusIfEEE9Policy600EPfS8_iS6_ffNS4_8identityEEEvT0_T1_T2_T3_T4_T6_"
    )
    assert demangled(kernel).startswith("void cub::CUB_200200_750_NS::DeviceReduceSingleTileKernel<")
