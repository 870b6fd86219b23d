"""The run that a save carries tests over from, in real repositories."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.documents.stores import NOBODY, A, B, git, run_of
from support.documents.strategies import simple_test

from pytest_opprof.baselines.archive import Archive, open_store
from pytest_opprof.baselines.store import Saved
from pytest_opprof.compare.renamed_tests import parse_renames, with_new_names
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Commit, Run, TestResult

SWAPPED = (
    simple_test({"aten::mul": 1}, node_id="one.py::test_s"),
    simple_test({"aten::mul": 2}, node_id="two.py::test_s"),
)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Archive:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    git(tmp_path, "init", "-q", "-b", "main")
    return open_store("dir:.opprof", root=tmp_path)


def commit(store: Archive) -> str:
    git(store.folder, "commit", "-q", "--allow-empty", "-m", "one more")
    return git(store.folder, "rev-parse", "HEAD")


def save(store: Archive, of: str, *tests: TestResult, hours: int, dirty: bool = False) -> Saved:
    run = replace(run_of(1, *tests, hours=hours), commit=Commit(id=of, dirty=dirty))
    return store.save("main", run, collected=NOBODY)


def save_renamed(store: Archive, of: str, *tests: TestResult, hours: int, dirty: bool = False) -> Saved:
    """Save after ``git mv`` of the tests' files, in a session that collected all."""
    renames = parse_renames(["t.py -> new.py", "one.py -> two.py", "two.py -> one.py"], where="")

    def renamed(run: Run) -> Run:
        return with_new_names(run, renames)[0]

    moved = tuple(renamed(run_of(1, *tests, hours=hours)).tests)
    run = replace(run_of(1, *moved, hours=hours), commit=Commit(id=of, dirty=dirty))
    known = {test.node_id for test in renamed(run_of(1, A, B, *SWAPPED)).tests}
    collected = Collected(node_ids=frozenset(known), whole_paths=frozenset({"."}))
    return store.save("main", run, collected=collected, renamed=renamed)


def origins(saved: Saved) -> dict[str, str | None]:
    return {test.node_id: test.carried_from.commit for test in saved.run.tests if test.carried_from}


def test_tests_come_from_the_nearest_ancestor(store: Archive) -> None:
    old, first, second = (commit(store) for _ in range(3))
    save(store, old, A, B, hours=1)
    save(store, second, A, B, hours=2)
    saved = save(store, first, A, hours=3)
    assert origins(saved) == {B.node_id: old[:7]}
    assert saved.notes == (f"1 test that did not run kept from main@{old[:7]}",)


def test_tests_come_from_the_clean_run_of_a_commit(store: Archive) -> None:
    first, second = commit(store), commit(store)
    save(store, first, A, B, hours=1)
    save(store, first, A, B, hours=2, dirty=True)
    assert save(store, second, A, hours=3).notes == (f"1 test that did not run kept from main@{first[:7]}",)


def test_without_a_run_of_an_ancestor_the_latest_is_taken_and_named(store: Archive) -> None:
    first = commit(store)
    git(store.folder, "switch", "-q", "-c", "feature")
    feature = commit(store)
    save(store, feature, A, B, hours=1)
    saved = save(store, first, A, hours=2)
    assert origins(saved) == {B.node_id: feature[:7]}
    what = f"the commit {feature[:7]} it was stored under is not an ancestor of {first[:7]}"
    assert saved.notes[1:] == (f"the tests that did not run are from the latest run named 'main': {what}",)
    assert save(store, first, A, B, hours=3).notes == ()


def test_renamed_tests_are_carried_under_their_new_names(store: Archive) -> None:
    first, second = commit(store), commit(store)
    save(store, first, A, B, hours=1)
    saved = save_renamed(store, second, A, hours=2)
    assert origins(saved) == {"new.py::test_b": first[:7]}
    assert saved.notes == (f"1 test that did not run kept from main@{first[:7]}",)


def test_tests_are_renamed_within_uncommitted_changes(store: Archive) -> None:
    first = commit(store)
    save(store, first, A, B, hours=1, dirty=True)
    assert origins(save_renamed(store, first, A, hours=2, dirty=True)) == {
        "new.py::test_b": f"{first[:7]}+dirty"
    }


def test_names_that_two_tests_swapped_stay_swapped(store: Archive) -> None:
    old, first = commit(store), commit(store)
    save(store, old, *SWAPPED, hours=1)
    swapped = {"one.py::test_s": SWAPPED[1].totals, "two.py::test_s": SWAPPED[0].totals}
    for hours, test in ((2, A), (3, B)):
        saved = save_renamed(store, first, test, hours=hours)
        assert {one.node_id: one.totals for one in saved.run.tests if one.node_id in swapped} == swapped
