"""Where a store's history lies."""

from pathlib import Path

import pytest

from pytest_opprof.history.store import history_of


@pytest.mark.parametrize(
    ("uri", "folder"),
    [
        ("dir:.opprof", ".opprof/history"),
        ("dir:/elsewhere", "/elsewhere/history"),
        ("kept/here", "kept/here/history"),
        ("git:", ".opprof/history"),
        ("s3://bucket/folder", ".opprof/history"),
    ],
)
def test_history_lies_beside_a_folder(tmp_path: Path, uri: str, folder: str) -> None:
    assert history_of(uri, root=tmp_path).folder == tmp_path / folder
