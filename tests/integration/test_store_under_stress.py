"""Stores on a full disk, a read-only disk and a lost object store; killed saves and concurrent saves."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.documents.saving import FORK, MANY, SAVE, SAVED
from support.documents.stores import NOBODY, SHARED, A, Place, environment_of, git, place_of, run_of
from support.documents.strategies import simple_test

from pytest_opprof.baselines.archive import Archive, open_store
from pytest_opprof.errors import StoreError
from pytest_opprof.results.files import write_bytes
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Run

ALL_OF_IT = Collected(whole_paths=frozenset({"."}))
# The number of kill points that are tried, unless all are (`make test-all`).
SAMPLE = 5


def large_run(number: int, *, tests: int) -> Run:
    return run_of(
        number,
        *(
            simple_test({f"aten::mul{i}": i + 1 for i in range(50)}, node_id=f"t.py::test_{test}")
            for test in range(tests)
        ),
    )


@pytest.fixture(params=["dir", "git", "counts"])
def small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Archive]:
    """A store on a real file system of 1 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        if request.param == "git":
            git(disk, "init", "-q", "--template=")
        path = "" if request.param == "git" else ".opprof"
        yield open_store(f"{request.param}:{path}", root=disk)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.slow
def test_full_disk_leaves_the_earlier_run(small_disk: Archive, tmp_path: Path) -> None:
    small_disk.save("main", run_of(1), collected=NOBODY)
    (entry,) = small_disk.entries("main")
    before = small_disk.store.read(entry)
    room = os.statvfs(tmp_path / "disk")
    write_bytes(tmp_path / "disk" / "filler", b"x" * (room.f_bavail * room.f_frsize - 8192))
    # Git compresses what it writes; distinct names leave more than the disk can hold.
    with pytest.raises(StoreError, match=r"the disk is full\. Free some space and run again"):
        small_disk.save("main", large_run(2, tests=400), collected=NOBODY)
    assert small_disk.entries("main") == (entry,)
    assert small_disk.store.read(entry) == before
    (tmp_path / "disk" / "filler").unlink()
    small_disk.save("main", run_of(3), collected=NOBODY)
    assert small_disk.load(small_disk.entries("main")[0]).tests == small_disk.load(entry).tests


def test_read_only_disk_is_reported(small_disk: Archive, tmp_path: Path) -> None:
    small_disk.save("main", run_of(1), collected=NOBODY)
    subprocess.run(["mount", "-o", "remount,ro", str(tmp_path / "disk")], check=True)
    with pytest.raises(StoreError, match="the file system is read-only"):
        small_disk.save("main", run_of(2), collected=NOBODY)
    (entry,) = small_disk.entries("main")
    assert [test.node_id for test in small_disk.load(entry).tests] == [
        test.node_id for test in run_of(1).tests
    ]


@pytest.fixture(params=SHARED)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of(request.param, tmp_path, request)


@pytest.mark.slow
@pytest.mark.parametrize("place", [*SHARED, "counts"], indirect=True)
def test_two_saves_at_once_lose_nothing(place: Place) -> None:
    savers = [
        subprocess.Popen(
            [sys.executable, "-m", "support.documents.saving", "many", name],
            env=environment_of(place),
            stdin=subprocess.PIPE,
        )
        for name in ("a", "b")
    ]
    for saver in savers:
        assert saver.stdin is not None
        saver.stdin.write(b"go\n")
        saver.stdin.flush()
    for saver in savers:
        saver.communicate(timeout=120)
        assert saver.returncode == 0
    store = place.archive()
    (entry,) = store.entries("main")
    stored = {test.node_id for test in store.load(entry).tests}
    assert stored == {f"t.py::test_{name}_{number}" for name in "ab" for number in range(MANY)}


class Saver:
    """Starts children that save the run of a commit, under strace."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._log = place.folder / "strace.log"
        self._parent = subprocess.Popen(
            [sys.executable, "-m", "support.documents.saving", "forks"],
            env=environment_of(place),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._given, self._told = self._parent.stdin, self._parent.stdout

    def save(self, *expressions: str) -> str:
        """Save a run under strace with these options; return strace's log."""
        self._give(FORK)
        child = self._told.readline().decode().strip()
        command = ["strace", "-f", "-o", str(self._log), "-p", child]
        for expression in expressions:
            command += ["-e", expression]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as strace:
            assert strace.stderr is not None
            first = strace.stderr.readline()
            self._give(SAVE)
            if "attached" not in first:
                pytest.skip(f"strace may not look at processes here: {first.strip()}")
            strace.communicate(timeout=60)
        return self._log.read_text(errors="replace")

    def _give(self, data: bytes) -> None:
        self._given.write(data)
        self._given.flush()

    def stop(self) -> None:
        self._parent.communicate(timeout=60)


@pytest.fixture
def saver(place: Place) -> Iterator[Saver]:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed: it kills a save between two of its system calls")
    place.archive().save("main", run_of(1), collected=NOBODY)
    saver = Saver(place)
    yield saver
    saver.stop()


def calls_in(log: str) -> list[tuple[str, int]]:
    """Each system call of a save's processes: its name and its index in its process."""
    seen: Counter[tuple[str, str]] = Counter()
    found: dict[tuple[str, int], None] = {}
    for process, name in re.findall(r"^(\d+) +(\w+)\(", log, re.MULTILINE):
        seen[process, name] += 1
        found[name, seen[process, name]] = None
    return list(found)


@pytest.mark.slow
def test_killed_save_leaves_the_earlier_run(place: Place, saver: Saver, *, large_counts: bool) -> None:
    # The saved run is of the same commit: it replaces the earlier one, whose test it keeps.
    calls = calls_in(saver.save())
    store = place.archive()
    (entry,) = store.entries("main")
    assert [test.node_id for test in store.load(entry).tests] == [SAVED, A.node_id]
    chosen = calls if large_counts else calls[:: max(len(calls) // SAMPLE, 1)]
    killed = 0
    for name, count in chosen:
        store.save("main", run_of(1), collected=ALL_OF_IT)
        log = saver.save(f"trace={name}", f"inject={name}:signal=KILL:when={count}")
        killed += "killed by SIGKILL" in log
        (entry,) = store.entries("main")
        run = store.load(entry)
        assert run.test(A.node_id) == A or run.test(SAVED), f"killed at {name} {count}"
        assert {test.node_id for test in run.tests} in ({A.node_id}, {A.node_id, SAVED})
        for lock in place.folder.glob(".git/**/*.lock"):
            lock.unlink()  # git itself reports a leftover lock
    assert killed > len(chosen) // 2


def test_lost_object_store_is_reported(
    object_store_variables: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fsspec = pytest.importorskip("fsspec")
    for uri, problem in (("s3://nowhere/x", "cannot be written"), ("s3://baselines/x", "cannot be read")):
        if problem == "cannot be read":
            monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
            fsspec.get_filesystem_class("s3").clear_instance_cache()  # it has the other server's address
        store = open_store(uri, root=tmp_path)
        with pytest.raises(StoreError, match=rf"^{uri} {problem}: .*The store is unchanged$"):
            store.save("main", run_of(1), collected=NOBODY)
