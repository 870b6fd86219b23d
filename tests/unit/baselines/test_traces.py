"""Traces beside baselines, and pairs of regressions: which are kept, removed or left out."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.baselines.archive import open_store
from pytest_opprof.baselines.traces import SavedTraces, TracePairs, pair_words, project_pairs, traces_of
from pytest_opprof.baselines.viewing import viewable_by_name
from pytest_opprof.errors import StoreError
from pytest_opprof.results.names import trace_stem
from pytest_opprof.results.run import CarriedFrom, Run

IDS = ("t.py::test_a", "t.py::test_b", "t.py::test_c")


def a_run(number: int, *node_ids: str) -> Run:
    tests = [simple_test({"aten::mul": 1}, node_id=node_id) for node_id in node_ids or IDS]
    return simple_run(*tests, run_id=f"run{number}")


def staged(folder: Path, sizes: dict[str, int], *, at: int = 1) -> dict[str, Path]:
    """Files of these sizes, written at the given time."""
    folder.mkdir(exist_ok=True)
    paths = {}
    for node_id, size in sizes.items():
        paths[node_id] = folder / f"{trace_stem(node_id)}.json.gz"
        paths[node_id].write_bytes(b"x" * size)
        os.utime(paths[node_id], (at, at))
    return paths


@pytest.fixture
def saved(tmp_path: Path) -> SavedTraces:
    return SavedTraces(folder=tmp_path / "traces", budget=100)


def there(saved: SavedTraces) -> dict[str, int]:
    """The sizes of the kept traces, by test and run."""
    return {
        path.name.removesuffix(".json.gz").replace("-", ".").split(".", 2)[0]
        + path.name.removesuffix(".json.gz").rpartition(".")[2]: path.stat().st_size
        for path in (saved.folder / "saved").iterdir()
    }


def test_a_saved_test_has_the_trace_of_its_measurement(saved: SavedTraces, tmp_path: Path) -> None:
    run = a_run(1)
    assert saved.keep(staged(tmp_path / "new", {IDS[0]: 10}), run) == ()
    assert saved.of(run.tests[0], run) == saved.folder / "saved" / f"{trace_stem(IDS[0])}.run1.json.gz"
    assert saved.of(run.tests[1], run) is None
    assert saved.of(run.tests[0], a_run(2)) is None
    assert (saved.folder / ".gitignore").read_text() == "*\n"
    assert list((tmp_path / "new").iterdir()) == []


def test_a_carried_test_has_the_trace_of_its_own_run(saved: SavedTraces, tmp_path: Path) -> None:
    first, second = a_run(1, IDS[0]), a_run(2, IDS[0])
    saved.keep(staged(tmp_path / "new", {IDS[0]: 10}), first)
    (test,) = second.tests
    carried = replace(test, carried_from=CarriedFrom(run_id="run1", created=first.created))
    assert saved.of(carried, second) == saved.of(first.tests[0], first)
    again = staged(tmp_path / "new", {IDS[0]: 10})
    saved.keep(again, replace(second, tests=(carried,)))  # it did not run: not a trace of the second
    assert again[IDS[0]].exists()


def test_the_largest_have_no_room_and_are_named(saved: SavedTraces, tmp_path: Path) -> None:
    sizes = {IDS[0]: 70, IDS[1]: 30, IDS[2]: 40}
    (note,) = saved.keep(staged(tmp_path / "new", sizes), a_run(1))
    assert note == (
        "no trace of t.py::test_a was stored: it does not fit into the 100 B of opprof_trace_budget"
    )
    assert there(saved) == {"test_brun1": 30, "test_crun1": 40}


def test_oldest_traces_are_removed_first(saved: SavedTraces, tmp_path: Path) -> None:
    for number, node_id in enumerate(IDS[:2]):
        saved.keep(staged(tmp_path / "new", {node_id: 40}, at=10 + number), a_run(number))
    assert saved.keep(staged(tmp_path / "new", {IDS[2]: 50}, at=20), a_run(2)) == ()
    assert there(saved) == {"test_brun1": 40, "test_crun2": 50}


def test_five_traces_of_a_test_are_kept(saved: SavedTraces, tmp_path: Path) -> None:
    for number in range(8):
        saved.keep(staged(tmp_path / "new", {IDS[0]: 1}, at=number), a_run(number))
    assert there(saved) == {f"test_arun{number}": 1 for number in range(3, 8)}


def test_unwritable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "traces").touch()
    saved = SavedTraces(folder=tmp_path / "traces", budget=100)
    (note,) = saved.keep(staged(tmp_path / "new", {IDS[0]: 1}), a_run(1))
    assert note.startswith("no traces were stored: ")


@pytest.mark.parametrize(
    ("uri", "folder"),
    [("dir:kept", "kept/traces"), ("counts:kept", ".opprof/traces"), ("git:", ".opprof/traces")],
)
def test_stores_that_others_read_have_no_traces(tmp_path: Path, uri: str, folder: str) -> None:
    found = traces_of(open_store(uri, root=tmp_path), root=tmp_path, budget=7)
    assert found == SavedTraces(folder=tmp_path / folder, budget=7)


# ---- pairs -----------------------------------------------------------------------------------


@pytest.fixture
def pairs(tmp_path: Path) -> TracePairs:
    return TracePairs(folder=tmp_path / "pairs", budget=100, since_ns=1_000_000_000_000)


def test_a_pair_is_copied_and_moved(pairs: TracePairs, tmp_path: Path) -> None:
    files = staged(tmp_path / "new", {IDS[0]: 10, IDS[1]: 20})
    assert pairs.put(IDS[0], base=files[IDS[0]], head=files[IDS[1]]) == ""
    sizes = [pairs.path(IDS[0], side).stat().st_size for side in ("base", "head")]
    assert sizes == [10, 20]
    assert files[IDS[0]].exists()
    assert not files[IDS[1]].exists()
    assert pair_words(IDS[0], pairs, missing="none").endswith(
        f"/pairs/{trace_stem(IDS[0])}.{{base,head}}.json.gz   (opprof view test_a)"
    )


def test_a_pair_without_a_base_says_so(pairs: TracePairs, tmp_path: Path) -> None:
    files = staged(tmp_path / "new", {IDS[0]: 10, IDS[1]: 20})
    pairs.put(IDS[0], base=files[IDS[0]], head=files[IDS[1]])
    pairs.put(IDS[0], base=None, head=staged(tmp_path / "new", {IDS[1]: 20})[IDS[1]])
    assert not pairs.path(IDS[0], "base").exists()
    assert pair_words(IDS[0], pairs, missing="it is gone").endswith(
        ".head.json.gz   (opprof view test_a); it is gone"
    )


def test_command_names_one_test(pairs: TracePairs, tmp_path: Path) -> None:
    node_ids = ("a.py::test_a", "b.py::test_a", "b.py::test_a-b")
    told = {}
    for node_id in node_ids:
        pairs.put(node_id, base=None, head=staged(tmp_path / "new", {IDS[0]: 1})[IDS[0]])
        told[node_id] = pair_words(node_id, pairs, missing="", tests=node_ids)
    for node_id, words in told.items():
        (name,) = re.findall(r"\(opprof view (\S+)\)", words)
        assert viewable_by_name(pairs.folder, name).files["head"] == pairs.path(node_id, "head")
    assert name == "test_a-b"


def test_shell_unsafe_test_is_named_by_its_file(pairs: TracePairs, tmp_path: Path) -> None:
    node_id = "t.py::test_a[$(x) 'y']"
    pairs.put(node_id, base=None, head=staged(tmp_path / "new", {IDS[0]: 1})[IDS[0]])
    assert f"(opprof view {trace_stem(node_id)})" in pair_words(node_id, pairs, missing="")


def test_user_folder_is_named_and_not_ignored_by_git(tmp_path: Path) -> None:
    pairs = project_pairs(tmp_path, budget=100, named=tmp_path / "my traces")
    (tmp_path / "my traces").mkdir()
    pairs.put(IDS[0], base=None, head=staged(tmp_path / "new", {IDS[0]: 1})[IDS[0]])
    assert [path.name for path in pairs.folder.iterdir()] == [f"{trace_stem(IDS[0])}.head.json.gz"]
    assert "(opprof view test_a --traces='" in pair_words(IDS[0], pairs, missing="")


def test_pairs_of_earlier_sessions_make_room(pairs: TracePairs, tmp_path: Path) -> None:
    for number, node_id in enumerate(IDS[:2]):
        head = staged(tmp_path / "new", {node_id: 45}, at=10 + number)[node_id]
        assert pairs.put(node_id, base=None, head=head) == ""
    assert pairs.put(IDS[2], base=None, head=staged(tmp_path / "new", {IDS[2]: 40})[IDS[2]]) == ""
    assert [pairs.path(node_id, "head").exists() for node_id in IDS] == [False, True, True]


def test_pairs_of_this_session_stay(pairs: TracePairs, tmp_path: Path) -> None:
    head = staged(tmp_path / "new", {IDS[0]: 60}, at=2_000)[IDS[0]]
    assert pairs.put(IDS[0], base=None, head=head) == ""
    later = staged(tmp_path / "new", {IDS[1]: 60}, at=2_000)[IDS[1]]
    assert pairs.put(IDS[1], base=None, head=later).startswith("no trace of t.py::test_b was stored: ")
    assert pairs.path(IDS[0], "head").exists()
    assert not later.exists()


def test_a_pair_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    pairs = TracePairs(folder=tmp_path / "file", budget=100, since_ns=0)
    with pytest.raises(StoreError, match="cannot be written"):
        pairs.put(IDS[0], base=None, head=staged(tmp_path / "new", {IDS[0]: 1})[IDS[0]])
