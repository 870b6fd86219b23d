"""The check of native modules' includes finds its faults."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

NATIVE = Path(__file__).parents[2] / "native"


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_rooms", NATIVE / "check_rooms.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sources(folder: Path, **includes: str) -> Path:
    for name, included in includes.items():
        file = folder / name.replace("__", "/").replace("_dot_", ".")
        file.parent.mkdir(exist_ok=True)
        file.write_text(f'#include "{included}"\n')
    return folder


def test_a_circle_of_units_is_found(check: ModuleType, tmp_path: Path) -> None:
    folder = sources(tmp_path, core__a_dot_c="core/b.h", core__b_dot_c="core/a.h")
    sources(folder, core__a_dot_h="stdint.h", core__b_dot_h="stdint.h")
    assert check.faults(folder) == ["includes itself: core/a -> core/b -> core/a"]


def test_an_include_of_a_later_room_is_found(check: ModuleType, tmp_path: Path) -> None:
    folder = sources(tmp_path, core__a_dot_h="result/b.h", result__b_dot_h="stdint.h")
    assert check.faults(folder) == ["core/a.h includes result/b.h: core comes before result"]


def test_a_source_without_a_header_is_found(check: ModuleType, tmp_path: Path) -> None:
    folder = sources(tmp_path, core__a_dot_c="stdint.h", core__speed_dot_c="stdint.h")
    assert check.faults(folder) == ["core/a.c: it has no header core/a.h to declare what it gives"]


def test_native_sources_have_no_fault(check: ModuleType) -> None:
    assert check.faults(NATIVE / "src") == []
