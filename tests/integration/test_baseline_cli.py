"""``opprof baseline``, action by action."""

import json
import re
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.documents.stores import FAMILY, NOBODY, A, B, git, key, run_of

from pytest_opprof.baselines.archive import Archive, open_store
from pytest_opprof.cli.main import main
from pytest_opprof.results.files import write_run
from pytest_opprof.results.run import Commit, Environment, Outcome


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Archive:
    """A store with two baselines, in the folder where commands start."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    store = open_store("dir:.opprof", root=tmp_path)
    store.save("main", run_of(1, A), collected=NOBODY)
    store.save("main", run_of(2, A, B), collected=NOBODY)
    store.save("release-1", run_of(1, A, dirty=True), collected=NOBODY)
    return store


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> list[str]:
    """A command's output."""
    assert main(["baseline", *arguments]) == code
    printed = capsys.readouterr()
    return (printed.err if code else printed.out).splitlines()


def test_list_has_a_row_for_each_baseline(store: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    header, main_row, other = told(capsys, "list")
    assert header.split() == ["baseline", "newest", "age", "runs", "tests", "environment"]
    name, newest, *age, runs, tests, environment = main_row.split()
    assert (name, newest, age[1:], runs, tests) == ("main", "0000000", ["days"], "2", "2")
    assert environment == run_of(2).environment.digest[:8]
    assert other.split()[:2] == ["release-1", "0000000+dirty"]


def test_list_of_a_name_has_its_runs(store: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    _, newest, oldest = told(capsys, "list", "main")
    assert newest.endswith(f".opprof/main/{key(2)}.json")
    assert oldest.endswith(f".opprof/main/{key(1)}.json")
    assert newest.split()[:2] == ["0000000", FAMILY]


def test_list_tells_a_run_of_the_future(store: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    store.save("main", replace(run_of(3), created=datetime(2400, 1, 1, tzinfo=UTC)), collected=NOBODY)
    assert re.search(r"^0000000 .* days ahead ", told(capsys, "list", "main")[1])
    assert " days ahead " in told(capsys, "list")[1]


def test_runs_of_several_environments_are_named_apart(
    store: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    another = Environment(fingerprint={"python": "3.12"})
    store.save("main", replace(run_of(2, hours=1), environment=another), collected=NOBODY)
    commit = f"main@{2:040x}"
    assert told(capsys, "show", commit, code=2) == [
        f"opprof: {commit} has runs of 2 environments. Name one: {commit}_{FAMILY}, {commit}_py3.12"
    ]
    assert told(capsys, "show", "main@0000000_py3.12")[0].startswith("main@0000000")
    assert told(capsys, "remove", "main@0000000_py3.12") == [f"removed .opprof/main/{2:040x}_py3.12.json"]
    assert len(store.entries("main")) == 2


def test_ambiguous_name_lists_the_projects(store: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    for project in ("packages/a", "packages/b"):
        replace(store, project=project).save("theirs", run_of(1), collected=NOBODY)
    (line,) = told(capsys, "show", "theirs", code=6)
    assert line.endswith("(other projects have it. Name one: packages/a:theirs, packages/b:theirs)")
    told(capsys, "show", "packages/a:theirs")
    told(capsys, "remove", "packages/a:theirs")
    assert store.names() == ("main", "packages/b:theirs", "release-1")


def test_list_prints_json(store: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    listed = json.loads("\n".join(told(capsys, "list", "--json")))
    assert listed[0] == {
        "name": "main",
        "runs": 2,
        "newest": {
            "key": key(2),
            "environment": FAMILY,
            "commit": f"{2:040x}",
            "dirty": False,
            "created": "2026-01-03T00:00:00+00:00",
            "place": f".opprof/main/{key(2)}.json",
        },
        "tests": 2,
        "fingerprint": run_of(2).environment.digest,
        "problem": None,
    }
    runs = json.loads("\n".join(told(capsys, "list", "release-1", "--json")))
    assert [(run["key"], run["dirty"]) for run in runs] == [(key(1, dirty=True), True)]


def test_damaged_baseline_is_listed_with_its_fault(
    store: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(f".opprof/main/{key(2)}.json").write_text('{"created": "2026-02-01T00:00:00+00:00"')
    lines = told(capsys, "list")
    assert lines[1].split()[-3:] == ["2", "?", "?"]
    assert lines[-1].startswith(f".opprof/main/{key(2)}.json: this is not JSON")
    assert "this is not JSON" in json.loads("\n".join(told(capsys, "list", "--json")))[0]["problem"]


def test_empty_store_says_how_to_fill_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told(capsys, "list") == ["dir:.opprof is empty: record a baseline with pytest --opprof-save=NAME"]


def test_show_prints_op_tables(store: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, "show", "main@0000000000000000000000000000000000000001")
    assert lines[0] == "main@0000000: measured 2026-01-02 00:00 UTC, 1 of 1 tests"
    assert any(line.split()[:1] == ["aten::mul"] for line in lines)
    lines = told(capsys, "show", "nightly", code=6)
    assert lines == ["opprof: no baseline 'nightly' in dir:.opprof (it has: main, release-1)"]


def test_save_keeps_a_run_document(store: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(Path("run.json"), run_of(3, A))
    assert told(capsys, "save", "main", "run.json") == [
        f"saved main@0000000: .opprof/main/{key(3)}.json",
        "1 test that did not run kept from main@0000000",
        "the tests that did not run are from the latest run named 'main': this is not a git repository",
    ]
    assert len(store.entries("main")) == 3


def test_saving_a_whole_run_drops_missing_tests(store: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    failed = replace(B, outcome=Outcome.FAILED)
    write_run(Path("run.json"), run_of(3, A, failed))
    told(capsys, "save", "main", "run.json", "--whole")
    (newest, *_) = store.entries("main")
    assert [test.node_id for test in store.load(newest).tests] == [A.node_id, B.node_id], (
        "it is there, and fails"
    )
    write_run(Path("run.json"), run_of(4, A))
    assert told(capsys, "save", "main", "run.json", "--whole") == [
        f"saved main@0000000: .opprof/main/{key(4)}.json",
        f"1 test of main@0000000 dropped, no longer collected: {B.node_id}",
    ]
    assert store.load(store.entries("main")[0]).tests == (A,)


def test_save_keeps_tests_under_their_new_names(store: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    Path("pytest.ini").write_text("[pytest]\nopprof_rename = t.py -> new.py\n")
    write_run(Path("run.json"), run_of(3, replace(A, node_id="new.py::test_a")))
    told(capsys, "save", "main", "run.json")
    newest = store.load(store.entries("main")[0])
    assert [test.node_id for test in newest.tests] == ["new.py::test_a", "new.py::test_b"]


def test_run_with_gaps_is_not_saved_as_whole(store: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(Path("shard.json"), run_of(3, A))
    assert main(["merge", "shard.json", "-o", "run.json", "--expect=2"]) == 1
    capsys.readouterr()
    (line,) = told(capsys, "save", "main", "run.json", "--whole", code=2)
    assert (
        line == "opprof: run.json is not a run of all tests: it lacks 1 of 2 shards. Save it without --whole"
    )
    told(capsys, "save", "main", "run.json")
    assert len(store.entries("main")) == 3


def test_save_from_another_host_keeps_the_other_tests(
    store: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, model in enumerate(("one", "two")):
        here = Environment(fingerprint={**run_of(3).environment.fingerprint, "cpu_model": model})
        run = replace(run_of(3, (A, B)[number], hours=number), environment=here)
        write_run(Path("run.json"), run)
        lines = told(capsys, "save", "nightly", "run.json")
    assert lines[1:] == [
        "1 test that did not run kept from nightly@0000000",
        "times cannot be compared: the environments differ (CPU model one -> two)",
    ]
    (entry,) = store.entries("nightly")
    assert len(store.load(entry).tests) == 2


def test_imported_times_leave_counts_in_place(store: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    stats = {"rounds": 2, "min": 1, "max": 2, "mean": 1.5}
    stored = {
        "datetime": "2026-01-05T00:00:00",
        "commit_info": {"id": f"{2:040x}", "dirty": False},
        "benchmarks": [{"fullname": A.node_id, "stats": stats}],
    }
    Path("benchmarks.json").write_text(json.dumps(stored), encoding="utf-8")
    assert main(["import-benchmarks", "benchmarks.json", "-o", "times.json"]) == 0
    capsys.readouterr()
    _, *notes = told(capsys, "save", "main", "times.json")
    assert notes == [
        "1 test that did not run kept from main@0000000",
        "1 test kept from main@0000000 with the counts: this run has no counts of them, so its times are left out",
    ]
    kept = store.load(store.entries("main")[0]).test(A.node_id)
    assert kept is not None
    assert (kept.steps, kept.ops) == (A.steps, A.ops)


def test_remove_takes_a_name_or_a_commit(store: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "remove", f"main@{1:040x}") == [f"removed .opprof/main/{key(1)}.json"]
    told(capsys, "remove", "release-1")
    assert store.names() == ("main",)
    told(capsys, "remove", "release-1", code=6)


def test_remove_refuses_the_beginning_of_several_commits(
    store: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = "1" * 40, "12" * 20
    for commit, dirty in ((one, False), (one, True), (other, False)):
        run = replace(run_of(5), commit=Commit(id=commit, dirty=dirty))
        store.save("main", run, collected=NOBODY)
    before = store.entries("main")
    assert main(["baseline", "remove", "main@1"]) == 2
    assert capsys.readouterr().err == f"opprof: main@1 is not unique. Name one: main@{other}, main@{one}\n"
    assert store.entries("main") == before
    assert len(told(capsys, "remove", "main@11")) == 2, "of one commit, clean and dirty"
    assert len(store.entries("main")) == len(before) - 2


@pytest.mark.parametrize("suffix", ["+dirty", "-dirty", f"+dirty_{FAMILY}"])
def test_a_run_with_uncommitted_changes_is_named_as_lists_do(
    store: Archive, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    store.save("main", run_of(2, dirty=True), collected=NOBODY)
    run = f"main@{2:040x}"
    assert told(capsys, "list", run + suffix)[1].startswith("0000000+dirty")
    assert told(capsys, "remove", run + suffix) == [f"removed .opprof/main/{key(2, dirty=True)}.json"]
    told(capsys, "show", run + suffix, code=6)
    told(capsys, "show", run)


def test_prune_keeps_the_newest_and_known_commits(
    store: Archive, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(capsys, "prune") == ["kept runs whose commits may be gone: this is not a git repository"]
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
    known = git(tmp_path, "rev-parse", "HEAD")
    assert told(capsys, "prune") == [], "no run is of a commit that is known: nothing tells which are lost"
    write_run(Path("run.json"), replace(run_of(5), commit=Commit(id=known, dirty=False)))
    told(capsys, "save", "main", "run.json")
    assert told(capsys, "prune", "main") == [f"removed .opprof/main/{key(number)}.json" for number in (2, 1)]
    store.save("main", run_of(9), collected=NOBODY)
    assert told(capsys, "prune", "main", "--keep=1") == [f"removed .opprof/main/{known}_{FAMILY}.json"]
    told(capsys, "prune", "--keep=0", code=2)
    told(capsys, "prune", "nothing", code=6)


def test_doctor_names_the_newest_of_a_store(
    store: Archive, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for uri, told in (
        ("dir:.opprof", "store         ok        dir:.opprof: 2 baselines, newest main@0000000"),
        ("dir:none", "store         empty     dir:none: record a baseline with pytest --opprof-save=NAME"),
        (
            "git:none",
            f"store         broken    git:none cannot be used: {tmp_path}/none is not a folder. Choose another store",
        ),
    ):
        main(["doctor", "--store", uri])
        assert capsys.readouterr().out.splitlines()[-1] == told


def test_counts_are_shown_as_reviewed(store: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "push", "main", "--to", "counts:ci")
    assert told(capsys, "show", "main", "--store=counts:ci")[0] == "main: reviewed counts, 2 of 2 tests"
    assert told(capsys, "list", "--store=counts:ci")[1].split()[:3] == ["main", "counts", "-"]


def test_push_and_pull_between_stores(
    store: Archive, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(capsys, "push", "main", "--to", "dir:other") == ["main: 2 runs copied"]
    assert open_store("dir:other", root=tmp_path).names() == ("main",)
    shutil.rmtree(".opprof")
    assert told(capsys, "pull", "--from", "dir:other") == ["main: 2 runs copied"]
    assert len(store.entries("main")) == 2
    told(capsys, "push", "--to", "counts:ci")
    assert Path("ci/main.counts.json").is_file()
    assert told(capsys, "push", code=2)[0].startswith("opprof: dir:.opprof has no remotes")


def test_nothing_to_copy_is_an_error(store: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "pull", "--from", "dir:none", code=6) == ["opprof: dir:none has no baselines to copy"]
    assert told(capsys, "push", "--to", "dir:other", "--store=dir:none", code=6) == [
        "opprof: dir:none has no baselines to copy"
    ]
    assert not Path("other").exists()


def test_push_and_pull_by_git(store: Archive, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("bare", "here"):
        (tmp_path / folder).mkdir()
    git(tmp_path / "bare", "init", "-q", "--bare")
    git(tmp_path / "here", "init", "-q")
    told(capsys, "push", "--to", "git:here")
    pushed = told(capsys, "push", "--store=git:here", "--remote", str(tmp_path / "bare"))
    assert pushed == ["main: 2 runs copied", "release-1: 1 run copied"]
    told(capsys, "remove", "main", "--store=git:here")
    pulled = told(capsys, "pull", "main", "--store=git:here", "--remote", str(tmp_path / "bare"))
    assert pulled == ["main: 2 runs copied"]
    assert told(capsys, "push", "--store=git:here", code=5)[0].startswith("opprof: git fetch origin failed")
