"""The package's public names: light to import, and complete."""

import subprocess
import sys

import pytest

import pytest_opprof

HEAVY = ("cffi", "_cffi_backend", "jsonschema_rs", "numpy", "torch", "pytest_opprof._collector")


def in_fresh_process(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()


def test_import_loads_no_other_module_of_ours() -> None:
    program = (
        "import sys; before = set(sys.modules); import pytest_opprof; "
        "print(sorted(name for name in set(sys.modules) - before if 'opprof' in name))"
    )
    assert in_fresh_process(program) == "['pytest_opprof']"


def test_import_loads_nothing_heavy() -> None:
    program = f"import sys, pytest_opprof; print([name for name in {HEAVY!r} if name in sys.modules])"
    assert in_fresh_process(program) == "[]"


@pytest.mark.parametrize("name", pytest_opprof.__all__)
def test_every_public_name_exists(name: str) -> None:
    value = getattr(pytest_opprof, name)
    # a constant does not know its name, and torch's private names are public in their module
    assert getattr(value, "__name__", name) == name.removeprefix("_")
    assert getattr(pytest_opprof, name) is value


def test_torchs_private_names_exist() -> None:
    assert pytest_opprof._filter_name("aten::is_leaf")
    assert not pytest_opprof._filter_stack_entry("torch/tensor.py(5): backward")
    assert pytest_opprof._rewrite_name("ProfilerStep#3", with_wildcard=True) == "ProfilerStep*"


def test_dir_lists_the_public_names() -> None:
    assert set(pytest_opprof.__all__) <= set(dir(pytest_opprof))


def test_star_import_works() -> None:
    names: dict[str, object] = {}
    exec("from pytest_opprof import *", names)  # noqa: S102  # the statement is what is tested
    assert set(pytest_opprof.__all__) <= set(names)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'pytest_opprof' has no attribute 'profiel'"):
        pytest_opprof.profiel  # noqa: B018  # the look-up is what is tested


def test_returned_classes_are_importable() -> None:
    program = (
        "import sys; from pytest_opprof import KeyAverages, Opprof, TraceFile, profile; "
        "p = profile(); p.start(); p.stop(); print(isinstance(p.key_averages(), KeyAverages), 'torch' in sys.modules)"
    )
    assert in_fresh_process(program) == "True False"
