"""Which files belong to the user."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

from pytest_opprof.capture.call_sites import library_folders


def test_packages_of_another_environment_are_installed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, "/other/lib/python3/site-packages", "/a/project"])
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/a/cache")  # asked for anew
    folders = library_folders()
    assert f"/other/lib/python3/site-packages{os.sep}" in folders
    assert f"/a/project{os.sep}" not in folders


def test_code_that_inductor_writes_is_not_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Torch says where once it has compiled."""
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    default = str(Path(tempfile.gettempdir()) / "torchinductor_somebody" / "ab" / "cab.py")
    assert default.startswith(library_folders())
    named = str(tmp_path / "ab" / "cab.py")
    assert not named.startswith(library_folders())
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    assert named.startswith(library_folders())
