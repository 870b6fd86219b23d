"""Promises of stores of all kinds."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.documents.stores import FAMILY, KINDS, NOBODY, A, B, Place, key, place_of, run_of
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.baselines import archive as archive_module
from pytest_opprof.baselines.archive import Archive
from pytest_opprof.baselines.store import Change, Changed, Entry, Put
from pytest_opprof.errors import DocumentError, UsageError
from pytest_opprof.results.files import run_to_bytes
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Environment, Measurement, MeasurementStatus


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of(request.param, tmp_path, request)


@pytest.fixture
def store(place: Place) -> Archive:
    return place.archive()


def keys(store: Archive, name: str = "main") -> list[str]:
    return [entry.key for entry in store.entries(name)]


def test_saved_run_is_found_again(store: Archive, place: Place) -> None:
    saved = store.save("main", run_of(1), collected=NOBODY)
    again = place.archive()
    assert again.names() == ("main",)
    (entry,) = again.entries("main")
    assert (entry.key, entry.commit, entry.is_dirty) == (key(1), f"{1:040x}", False)
    assert entry.created == run_of(1).created
    assert entry.place == saved.place
    assert again.load(entry) == replace(run_of(1), name="main")


def test_empty_store_has_no_entries(store: Archive) -> None:
    assert store.names() == ()
    assert store.entries("main") == ()


def test_newest_entry_comes_first(store: Archive) -> None:
    for number in (2, 3, 1):
        store.save("main", run_of(number), collected=NOBODY)
    assert keys(store) == [key(n) for n in (3, 2, 1)]


def test_uncommitted_changes_have_a_key_of_their_own(store: Archive) -> None:
    store.save("main", run_of(1), collected=NOBODY)
    saved = store.save("main", run_of(1, dirty=True), collected=NOBODY)
    assert "the work tree has uncommitted changes, so the run is stored as '-dirty'" in saved.notes
    assert set(keys(store)) == {key(1), key(1, dirty=True)}


def test_run_without_git_is_kept_under_its_time(store: Archive) -> None:
    saved = store.save("main", simple_run(A), collected=NOBODY)
    assert keys(store) == [f"20260102T000000.000000Z-abc_{FAMILY}"]
    assert "there is no commit, so the run is stored under its time" in saved.notes


def test_selection_replaces_only_what_ran(store: Archive) -> None:
    store.save("main", run_of(1, A, B), collected=NOBODY)
    again = simple_test({"aten::mul": 2}, node_id=A.node_id)
    saved = store.save("main", run_of(1, again), collected=NOBODY)
    (entry,) = store.entries("main")
    kept = store.load(entry)
    assert kept.test(A.node_id) == again
    assert kept.test(B.node_id) is not None
    assert saved.notes == ("1 test that did not run kept from main@0000000",)


def test_tests_that_are_gone_are_not_kept(store: Archive) -> None:
    store.save("main", run_of(1, A, B), collected=NOBODY)
    saved = store.save("main", run_of(1, A), collected=Collected(whole_paths=frozenset({"."})))
    (entry,) = store.entries("main")
    assert [test.node_id for test in store.load(entry).tests] == [A.node_id]
    assert saved.notes == (f"1 test of main@0000000 dropped, no longer collected: {B.node_id}",)


def test_nothing_measured_saves_nothing(store: Archive) -> None:
    broken = replace(A, measurement=Measurement(status=MeasurementStatus.ERROR, reason="x"))
    saved = store.save("main", run_of(1, broken), collected=NOBODY)
    assert saved.place is None
    assert saved.notes[-1] == "nothing was saved"
    assert store.names() == ()


def test_old_runs_are_dropped(store: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "KEPT_RUNS", 3)
    for number in range(5):
        store.save("main", run_of(number), collected=NOBODY)
    assert keys(store) == [key(n) for n in (4, 3, 2)]
    store.save("main", run_of(1), collected=NOBODY)
    assert keys(store) == [key(n) for n in (4, 3, 1)], "what was just saved stays"


def test_prune_drops_old_and_lost_commits(store: Archive) -> None:
    for number in range(5):
        store.save("main", run_of(number), collected=NOBODY)
    store.save("main", simple_run(A), collected=NOBODY)
    lost = {f"{1:040x}", f"{4:040x}"}
    gone = store.prune("main", keep=5, is_gone=lost.__contains__)
    # 0 is the sixth; 1 no longer exists; 4 is newer than all known commits, and may not be fetched yet.
    assert {entry.key for entry in gone} == {key(n) for n in (0, 1)}
    assert keys(store) == [key(n) for n in (4, 3, 2)] + [f"20260102T000000.000000Z-abc_{FAMILY}"]


def test_removing_the_last_run_removes_the_name(store: Archive) -> None:
    for number in (1, 2):
        store.save("main", run_of(number), collected=NOBODY)
    store.remove("main", is_meant=lambda entry: entry.commit == f"{1:040x}")
    assert keys(store) == [key(2)]
    store.remove("main", is_meant=lambda entry: True)
    assert store.names() == ()


def test_branch_names_are_valid_names(store: Archive) -> None:
    names = ("100%", "a..b", "end.", "feature/x y", "x.lock", "x@{y}", "~^?*[\\", "日本")
    for name in names:
        store.save(name, run_of(1), collected=NOBODY)
    assert store.names() == names
    assert [store.load(store.entries(name)[0]).name for name in names] == list(names)


def test_a_name_may_begin_with_another(store: Archive) -> None:
    for name in ("feature", "feature/x"):
        store.save(name, run_of(1), collected=NOBODY)
    assert store.names() == ("feature", "feature/x")


def test_invalid_name_is_refused(store: Archive) -> None:
    for name in ("", ".", "..", ".git", "a\nb", " a", "x" * 101, "traces", "\x1b[31m", "a:b"):
        with pytest.raises(UsageError, match=r"^baseline .*: a name has 1 to 100 "):
            store.save(name, run_of(1), collected=NOBODY)
        assert store.entries(name) == ()
    assert store.names() == ()


def test_damaged_run_is_reported_and_kept(store: Archive, place: Place) -> None:
    store.save("main", run_of(1), collected=NOBODY)
    store.save("main", run_of(2), collected=NOBODY)
    place.damage("main", key(2))
    damaged, whole = store.entries("main")
    for act in (lambda: store.load(damaged), lambda: store.save("main", run_of(2), collected=NOBODY)):
        with pytest.raises(DocumentError, match="The file was not used"):
            act()
    assert store.load(whole).tests == (A,)
    later = store.save("main", run_of(3), collected=NOBODY)
    assert later.notes[0].startswith("no test was kept from the previous run: ")
    store.remove("main", is_meant=lambda entry: entry.key == damaged.key)
    store.save("main", run_of(2), collected=NOBODY)
    assert keys(store) == [key(n) for n in (3, 2, 1)]


def test_runs_of_two_stores_are_joined(store: Archive, tmp_path: Path) -> None:
    other = archive_module.open_store("dir:other", root=tmp_path)
    store.save("main", run_of(1), collected=NOBODY)
    store.save("main", run_of(2, A), collected=NOBODY)
    other.save("main", run_of(2, B, hours=1), collected=NOBODY)
    other.save("main", run_of(3), collected=NOBODY)
    notes = store.take(other, ["main"])
    assert notes[0] == "main: 2 runs copied"
    assert notes[1] == "main@0000000 was in both stores: they are joined, and the later run wins"
    assert keys(store) == [key(n) for n in (3, 2, 1)]
    assert {test.node_id for test in store.load(store.entries("main")[1]).tests} == {A.node_id, B.node_id}
    assert store.take(other, ["main"]) == ("main: 0 runs copied",)
    other.take(store, ["main"])
    assert [other.load(entry) for entry in other.entries("main")] == [
        store.load(entry) for entry in store.entries("main")
    ]


def test_later_of_two_measurements_wins(store: Archive, tmp_path: Path) -> None:
    other = archive_module.open_store("dir:other", root=tmp_path)
    later = simple_test({"aten::mul": 7}, node_id=A.node_id)
    store.save("main", run_of(1, A), collected=NOBODY)
    other.save("main", run_of(1, later, hours=2), collected=NOBODY)
    store.take(other, ["main"])
    assert store.load(store.entries("main")[0]).test(A.node_id) == later
    other.take(store, ["main"])
    assert other.load(other.entries("main")[0]).test(A.node_id) == later


def test_damaged_run_is_not_copied(store: Archive, place: Place, tmp_path: Path) -> None:
    other = archive_module.open_store("dir:other", root=tmp_path)
    store.save("main", run_of(1), collected=NOBODY)
    store.save("main", run_of(2), collected=NOBODY)
    place.damage("main", key(2))
    notes = other.take(store, ["main"])
    assert notes[0] == "main: 1 run copied"
    assert notes[1].startswith("not copied: ")
    assert keys(other) == [key(1)]


def test_newer_environment_of_a_family_is_kept(store: Archive, tmp_path: Path) -> None:
    other = archive_module.open_store("dir:other", root=tmp_path)
    elsewhere = Environment(fingerprint={"python": "3.11", "torch": "2.13.1"})
    store.save("main", run_of(1, A), collected=NOBODY)
    other.save("main", replace(run_of(1, B, hours=1), environment=elsewhere), collected=NOBODY)
    store.take(other, ["main"])
    kept = store.load(store.entries("main")[0])
    assert [test.node_id for test in kept.tests] == [B.node_id]
    assert kept.environment == elsewhere


ANOTHER = Environment(fingerprint={"python": "3.12", "torch": "2.13.0"})


def test_runs_of_two_families_stand_side_by_side(store: Archive, tmp_path: Path) -> None:
    other = archive_module.open_store("dir:other", root=tmp_path)
    store.save("main", run_of(1, A), collected=NOBODY)
    first = store.save("main", replace(run_of(1, B, hours=1), environment=ANOTHER), collected=NOBODY)
    what = f"{FAMILY} -> py3.12-torch2.13"
    assert first.notes == (
        f"1 test of main@0000000 left out, measured in another environment ({what}): {A.node_id}",
    )
    again = store.save("main", run_of(1, B, hours=2), collected=NOBODY)
    assert again.notes == ("1 test that did not run kept from main@0000000",)
    tests = {
        entry.family: {test.node_id for test in store.load(entry).tests} for entry in store.entries("main")
    }
    assert tests == {FAMILY: {A.node_id, B.node_id}, "py3.12-torch2.13": {B.node_id}}
    assert other.take(store, ["main"]) == ("main: 2 runs copied",)
    assert sorted(keys(other)) == sorted(keys(store))


def test_copying_runs_keeps_the_newest(
    store: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_module, "KEPT_RUNS", 3)
    other = archive_module.open_store("dir:other", root=tmp_path)
    for number in (1, 3, 5):
        store.save("main", run_of(number), collected=NOBODY)
    for number in (0, 2, 4):
        other.save("main", run_of(number), collected=NOBODY)
    store.take(other, ["main"])
    assert keys(store) == [key(n) for n in (5, 4, 3)]


def test_each_family_has_room_of_its_own(store: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "KEPT_RUNS", 2)
    store.save("main", replace(run_of(0), environment=ANOTHER), collected=NOBODY)
    for number in range(4):
        store.save("main", run_of(number), collected=NOBODY)
    assert keys(store) == [key(3), key(2), f"{0:040x}_py3.12-torch2.13"]
    store.prune("main", keep=1, is_gone=lambda commit: False)
    assert keys(store) == [key(3), f"{0:040x}_py3.12-torch2.13"]


@pytest.mark.parametrize("environment", [run_of(1).environment, ANOTHER], ids=["same family", "another"])
def test_a_run_that_an_older_release_stored_is_read(store: Archive, environment: Environment) -> None:
    old = replace(run_of(1, A), environment=environment)
    put = Put(key=f"{1:040x}", created=old.created, data=run_to_bytes(old, where=""))
    store.store.change("main", lambda entries: Change(puts=(put,)))
    store.save("main", run_of(1, B, hours=1), collected=NOBODY)
    kept = [{test.node_id for test in store.load(entry).tests} for entry in store.entries("main")]
    both = environment != ANOTHER
    assert kept == ([{A.node_id, B.node_id}] if both else [{B.node_id}, {A.node_id}])
    assert keys(store) == [key(1)] + ([] if both else [put.key])


def test_projects_in_a_store_are_separate(place: Place) -> None:
    top = place.archive()
    ours, theirs = replace(top, project="packages/a"), replace(top, project="packages/b")
    for archive, test in ((top, A), (ours, B), (theirs, A)):
        archive.save("main", run_of(1, test), collected=NOBODY)
    assert top.names() == ("main", "packages/a:main", "packages/b:main")
    assert ours.names() == (":main", "main", "packages/b:main")
    (entry,) = ours.entries("main")
    assert entry == top.entries("packages/a:main")[0]
    assert ours.load(entry).name == "main"
    assert [test.node_id for test in ours.load(entry).tests] == [B.node_id]
    assert top.load(entry).title == "packages/a:main@0000000"
    ours.remove(":main", is_meant=lambda entry: True)
    assert top.names() == ("packages/a:main", "packages/b:main")


def test_copied_projects_stay_separate(store: Archive, tmp_path: Path) -> None:
    ours = replace(store, project="packages/a")
    own = replace(
        archive_module.open_store("dir:own", root=tmp_path), project="packages/a", home="packages/a"
    )
    for archive, test in ((store, A), (own, B)):
        archive.save("main", run_of(1, test), collected=NOBODY)
    ours.take(own, own.names())
    assert store.names() == ("main", "packages/a:main")
    own.take(ours, ours.names())
    assert own.names() == (":main", "main")
    assert [test.node_id for test in own.load(own.entries("main")[0]).tests] == [B.node_id]
    assert [test.node_id for test in own.load(own.entries(":main")[0]).tests] == [A.node_id]


@pytest.mark.parametrize("place", ["git", "memory", "s3"], indirect=True)
def test_concurrent_save_is_kept(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = place.archive(), place.archive()
    others = [run_of(1, B), run_of(2, B)]
    change = ours.store.change

    def changed_meanwhile(name: str, plan: Callable[[tuple[Entry, ...]], Change]) -> Changed:
        def later(entries: tuple[Entry, ...]) -> Change:
            while others:
                theirs.save(name, others.pop(), collected=NOBODY)
            return plan(entries)

        return change(name, later)

    monkeypatch.setattr(ours.store, "change", changed_meanwhile)
    ours.save("main", run_of(1, A), collected=NOBODY)
    stored = {entry.commit: theirs.load(entry) for entry in theirs.entries("main")}
    assert {test.node_id for test in stored[f"{1:040x}"].tests} >= {A.node_id, B.node_id}
    assert stored.keys() == {f"{1:040x}", f"{2:040x}"}
