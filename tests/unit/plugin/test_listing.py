"""What a measuring process says of the modules that its tests imported."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from pytest_opprof.plugin.listing import files_of_modules


def test_module_without_a_place_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ModuleType("made")
    made.__file__ = "_made.py"  # as that of torch.classes, which is no file of the project
    monkeypatch.setitem(sys.modules, "made", made)
    assert "made" not in files_of_modules()


def test_module_has_its_file() -> None:
    assert Path(files_of_modules()["pytest"]).samefile(str(pytest.__file__))
