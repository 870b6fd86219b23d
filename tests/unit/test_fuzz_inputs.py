"""The inputs of `make fuzz`: mutated JSON stays JSON, seeds are reproducible, databases survive a dump."""

import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fuzz.databases import dump_database, write_database
from fuzz.mutation import JsonMutator
from fuzz.target import bounded
from fuzz.targets.forges import grown
from support.cuda.nvidia_databases import random_nvprof, write_nvprof

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
def test_non_json_is_mutated_bytewise(data: bytes) -> None:
    assert {changed(seed, data) for seed in range(20)} == {BYTES}


def test_input_is_never_longer_than_it_may_be() -> None:
    assert all(len(changed(seed, most=60)) <= 60 for seed in range(50))


def test_database_survives_a_dump(tmp_path: Path) -> None:
    path = write_nvprof(tmp_path / "a.sqlite", random_nvprof(5))
    dumped = dump_database(path)
    assert write_database(tmp_path / "b.sqlite", dumped)
    with closing(sqlite3.connect(path)) as one, closing(sqlite3.connect(tmp_path / "b.sqlite")) as other:
        query = "SELECT * FROM CUPTI_ACTIVITY_KIND_MARKER"
        assert other.execute(query).fetchall() == one.execute(query).fetchall() != []
    assert dump_database(tmp_path / "b.sqlite") == dumped
    assert not write_database(tmp_path / "b.sqlite", dumped[:-9])


def test_processor_time_and_memory_are_findings() -> None:
    with bounded(seconds=60, mebibytes=1_024):
        pass
    with (
        pytest.raises(AssertionError, match=r"s of processor time, and 0 s are allowed"),
        bounded(seconds=0, mebibytes=1_024),
    ):
        sorted(range(100_000), key=lambda number: -number)
    with (
        pytest.raises(AssertionError, match=r"MiB more memory, and -1 MiB are allowed"),
        bounded(seconds=60, mebibytes=-1),
    ):
        pass


def test_grown_run_has_names_and_parents_of_its_own() -> None:
    tree = [{"parent": -1, "name": "f"}, {"parent": 0, "name": "g"}]
    run = {"tests": [{"node_id": "a", "ops": [{"name": "f"}], "tree": tree}]}
    found = grown(run, {"tests": 2, "ops": 3, "nodes": 2})
    first, second = found["tests"]
    assert (first["node_id"], second["node_id"]) == ("a", "a#1")
    assert [row["name"] for row in first["ops"]] == ["f", "f#1", "f#2"]
    assert [node["parent"] for node in second["tree"]] == [-1, 0, -1, 2]
    assert len(grown(run, {"ops": 2**63})["tests"][0]["ops"]) <= 100
    others: list[Any] = [
        None,
        [],
        {"tests": None},
        {"tests": [None]},
        {"tests": [{"ops": 3, "tree": [None]}]},
    ]
    for other in others:
        assert grown(other, {"tests": "2", "ops": 2}) == other
    assert grown(run, "2") == run


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is of the extra fuzz")
@pytest.mark.slow
def test_a_reader_that_falls_over_is_a_finding(tmp_path: Path) -> None:
    """Over a copy of the package whose reader of comments has a fault, deep in its text."""
    tests = tmp_path / "tests"
    tests.mkdir()
    for name in ("pytest_opprof", "schemas", "tests/fuzz", "tests/support"):
        subprocess.run(["cp", "-a", TESTS.parent / name, tmp_path / name], check=True)
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
