"""Temporary folders that the next process may find: their owners and locks."""

import os
from pathlib import Path

import pytest

from pytest_opprof.experiment.place import Place


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder for temporary files."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_folder_is_removed_with_its_contents(temporary: Path) -> None:
    with Place("it") as place:
        (place.folder / "inner").mkdir()
        assert place.folder.name.startswith("opprof-it-")
        lock = place.lock
    assert list(temporary.iterdir()) == []
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(lock)


@pytest.mark.parametrize("is_taken", [False, True])
def test_closed_descriptor_is_not_closed_again(temporary: Path, *, is_taken: bool) -> None:
    """Its number may belong to another file by then."""
    with Place("it") as place:
        lock = place.lock
        os.close(lock)
        if is_taken:
            assert os.open(os.devnull, os.O_RDONLY) == lock
    assert list(temporary.iterdir()) == []
    if is_taken:
        os.close(lock)
