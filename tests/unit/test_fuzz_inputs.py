"""The inputs of `make fuzz`: changed JSON stays JSON, the same seed changes alike, and databases hold what was dumped."""

import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from fuzz.databases import dump_database, write_database
from fuzz.mutation import JsonMutator
from nvidia_databases import random_nvprof, write_nvprof

TESTS = Path(__file__).parents[1]
DOCUMENT = json.dumps(
    {"tests": [{"name": "a", "count": 3}, {"name": "b", "count": 4}], "kind": "run"}
).encode()
BYTES = b"by libFuzzer"


def changed(seed: int, data: bytes = DOCUMENT, *, most: int = 4_096) -> bytes:
    return JsonMutator(lambda _data, size: BYTES[:size], ["aten::mul"])(data, most, seed)


def test_changed_json_is_other_json() -> None:
    found = [changed(seed) for seed in range(400)]
    ours = [data for data in found if data != BYTES]
    assert len(ours) > 250
    assert len({data for data in ours if json.loads(data) != json.loads(DOCUMENT)}) > 200


def test_same_seed_changes_alike() -> None:
    assert [changed(seed) for seed in range(50)] == [changed(seed) for seed in range(50)]


@pytest.mark.parametrize("data", [b"", b"no JSON", b"[" * 100_000, b"\xff"])
def test_what_is_no_json_is_changed_by_its_bytes(data: bytes) -> None:
    assert {changed(seed, data) for seed in range(20)} == {BYTES}


def test_input_is_never_longer_than_it_may_be() -> None:
    assert all(len(changed(seed, most=60)) <= 60 for seed in range(50))


def test_database_holds_what_was_dumped(tmp_path: Path) -> None:
    path = write_nvprof(tmp_path / "a.sqlite", random_nvprof(5))
    dumped = dump_database(path)
    assert write_database(tmp_path / "b.sqlite", dumped)
    with closing(sqlite3.connect(path)) as one, closing(sqlite3.connect(tmp_path / "b.sqlite")) as other:
        query = "SELECT * FROM CUPTI_ACTIVITY_KIND_MARKER"
        assert other.execute(query).fetchall() == one.execute(query).fetchall() != []
    assert dump_database(tmp_path / "b.sqlite") == dumped
    assert not write_database(tmp_path / "b.sqlite", dumped[:-9])


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is of the extra fuzz")
@pytest.mark.slow
def test_a_reader_that_falls_over_is_a_finding(tmp_path: Path) -> None:
    """Over a copy of the package in which the reader of comments has a fault, deep in its text."""
    for name in ("pytest_opprof", "schemas", "tests/fuzz"):
        subprocess.run(["cp", "-a", TESTS.parent / name, tmp_path / Path(name).name], check=True)
    tests = tmp_path / "tests"
    tests.mkdir()
    (tmp_path / "fuzz").rename(tests / "fuzz")
    (tests / "artifacts.py").write_bytes((TESTS / "artifacts.py").read_bytes())
    sticky = tmp_path / "pytest_opprof" / "forge" / "sticky.py"
    sound = "        if found is None:\n            return None\n"
    text = sticky.read_text(encoding="utf-8")
    assert text.count(sound) == 1
    sticky.write_text(
        text.replace(
            sound, f'{sound}        if int(found["run"]) != 4:\n            raise KeyError("planted")\n'
        )
    )
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", "--target", "comment", "--seconds", "30"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tests)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "KeyError: 'planted'" in done.stdout
    assert done.returncode == 1
    (found, *_) = (tmp_path / "build" / "fuzz" / "comment").glob("crash-*")
    assert b"opprof:sticky v1 key=" in found.read_bytes()
