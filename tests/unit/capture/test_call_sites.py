"""Which files belong to the user."""

import os
import sys

import pytest

from pytest_opprof.capture.call_sites import library_folders


def test_packages_of_another_environment_are_installed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, "/other/lib/python3/site-packages", "/a/project"])
    folders = library_folders.__wrapped__()
    assert f"/other/lib/python3/site-packages{os.sep}" in folders
    assert f"/a/project{os.sep}" not in folders
