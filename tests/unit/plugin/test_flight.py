"""Which crashes are kept."""

import os
from pathlib import Path

from pytest_opprof.plugin import flight


def test_the_newest_crashes_are_kept(tmp_path: Path) -> None:
    for age in range(23):
        path = tmp_path / f"{(age * 7) % 23:02}.json.gz"
        path.touch()
        os.utime(path, (1_000 - age, 1_000 - age))
    flight._prune(tmp_path)
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {f"{(age * 7) % 23:02}.json.gz" for age in range(20)}


def test_fewer_crashes_than_may_be_kept_all_stay(tmp_path: Path) -> None:
    (tmp_path / "one.json.gz").touch()
    flight._prune(tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
