"""A store on a full disk, a read-only one, and two saves at once."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from strategies import simple_run, simple_test

from pytest_opprof.baselines.directory import open_store
from pytest_opprof.errors import StoreError
from pytest_opprof.results.files import read_run, write_bytes
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Commit, Run

NOBODY = Collected()
COMMIT = Commit(id="1" * 40, dirty=False)


def run_of(*counts: int) -> Run:
    tests = (
        simple_test({f"aten::mul{i}": count for i in range(50)}, node_id=f"t.py::test_{number}")
        for number, count in enumerate(counts)
    )
    return simple_run(*tests, commit=COMMIT)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 128 KiB."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(tmp_path)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_full_disk_leaves_the_earlier_run(small_disk: Path) -> None:
    store = open_store("dir:.opprof", root=small_disk)
    saved = store.save("main", run_of(1), collected=NOBODY)
    assert saved.path is not None
    before = saved.path.read_bytes()
    room = os.statvfs(small_disk)
    write_bytes(small_disk / "filler", b"x" * (room.f_bavail * room.f_frsize - 4096))
    with pytest.raises(StoreError) as caught:
        store.save("main", run_of(*range(40)), collected=NOBODY)
    assert str(caught.value) == (
        f"{saved.path} cannot be written: the disk is full. Free some space and run again; "
        "an earlier file is as it was"
    )
    assert saved.path.read_bytes() == before
    assert list(saved.path.parent.iterdir()) == [saved.path]


def test_read_only_disk_is_one_sentence(small_disk: Path) -> None:
    store = open_store("dir:.opprof", root=small_disk)
    saved = store.save("main", run_of(1), collected=NOBODY)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StoreError, match="the file system is read-only"):
        store.save("main", run_of(2), collected=NOBODY)
    assert saved.path is not None
    assert read_run(saved.path).tests == run_of(1).tests


_SAVER = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from strategies import simple_run, simple_test
from pytest_opprof.baselines.directory import open_store
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Commit

store = open_store("dir:.opprof", root=Path(sys.argv[1]))
sys.stdin.readline()
for number in range(5):
    test = simple_test({"aten::mul": 1}, node_id=f"t.py::test_{sys.argv[3]}_{number}")
    store.save("main", simple_run(test, commit=Commit(id="1" * 40, dirty=False)), collected=Collected())
"""


def test_two_saves_at_once_lose_nothing(tmp_path: Path) -> None:
    helpers = str(Path(__file__).parents[1])
    savers = [
        subprocess.Popen(
            [sys.executable, "-c", _SAVER, str(tmp_path), helpers, name], stdin=subprocess.PIPE, text=True
        )
        for name in ("a", "b")
    ]
    for saver in savers:
        assert saver.stdin is not None
        saver.stdin.write("go\n")
        saver.stdin.flush()
    for saver in savers:
        saver.communicate(timeout=60)
        assert saver.returncode == 0
    store = open_store("dir:.opprof", root=tmp_path)
    (entry,) = store.entries("main")
    stored = {test.node_id for test in store.load(entry).tests}
    assert stored == {f"t.py::test_{name}_{number}" for name in "ab" for number in range(5)}
