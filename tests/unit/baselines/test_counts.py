"""Counts to commit and review."""

import dataclasses
import difflib
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from support.documents.judged_tests import compared
from support.documents.stores import NOBODY, A, B, run_of
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.baselines.archive import Archive, open_store
from pytest_opprof.baselines.counts import reviewable
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.errors import DocumentError, UsageError
from pytest_opprof.kinds import OpKind
from pytest_opprof.results.files import read_run, run_from_bytes, write_run
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import CaptureStats, Environment, OpRow, Run, TestResult, Timing
from pytest_opprof.results.samples import Samples

FILE = Path("ci/main.counts.json")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Archive:
    monkeypatch.chdir(tmp_path)
    return open_store("counts:ci", root=tmp_path)


def of_another_day(run: Run) -> Run:
    """The same code, measured elsewhere and later: another host, times, commit, order, lines of code."""
    tests = tuple(
        replace(
            test,
            capture=CaptureStats(events=99, threads=7, crash_recovery=False),
            totals={**test.totals, "total.self_cpu_time_total": Samples.constant(5, steps=test.steps)},
            ops=tuple(
                replace(
                    row.with_metrics(self_cpu_time_total=Samples.constant(9, steps=test.steps)),
                    source="f, another.py:9",
                    places={"f, another.py:9": 1},
                    parts={"self_cpu_time_total": {"f, another.py:9": 1}},
                )
                for row in reversed(test.ops)
            ),
            sources=tuple(reversed(test.sources)),
            unheard={"cuda": "another reason"},
            settings={"cpu_model": "another", **test.settings},
            timing=Timing(steps=1),
            functions={"native.instructions": {"f, another.py": 1}},
            calls={"f, another.py": {"test_a, another.py:9": 1}},
            lines={"f, another.py:9": "another"},
            callers={"f, another.py:9": ("test_a, another.py:9",)},
            ranks={"1": {"ops.count": 1}},
        )
        for test in reversed(run.tests)
    )
    return replace(
        run,
        run_id="another",
        created=run.created + timedelta(days=1),
        opprof_version="9.9",
        environment=Environment(
            fingerprint={
                **run.environment.fingerprint,
                **dict.fromkeys(("cpu_model", "numpy_cpu", "threads"), "another"),
            },
            details={"host": "another"},
        ),
        tests=tests,
    )


TWO = simple_test({"aten::mul": 2, "aten::add": 3, "forward": 1}, node_id=A.node_id)


def test_unchanged_code_is_the_same_bytes(store: Archive) -> None:
    store.save("main", run_of(1, TWO, B), collected=NOBODY)
    first = FILE.read_bytes()
    store.save("main", of_another_day(run_of(2, TWO, B)), collected=NOBODY)
    assert FILE.read_bytes() == first
    assert b"cpu_model" not in first
    assert b"another" not in first


def test_memory_of_numpy_depends_on_its_build(store: Archive) -> None:
    test = replace(
        A,
        sources=("memory-malloc", "ops", "ranges"),
        totals={**A.totals, "cpu_memory.allocated": Samples.constant(8, steps=A.steps)},
    )
    store.save("main", of_another_day(run_of(1, test)), collected=NOBODY)
    fingerprint = store.load(store.entries("main")[0]).environment.fingerprint
    assert fingerprint.keys() == {"python", "torch", "numpy_cpu", "threads"}


def test_gates_keep_their_order(store: Archive) -> None:
    gates = {"aten::mul.count": "off", "aten::*.count": "exact"}  # the last that matches wins
    store.save("main", run_of(1, replace(A, gates=gates)), collected=NOBODY)
    (test,) = store.load(store.entries("main")[0]).tests
    assert list(test.gates) == list(gates)


def test_one_more_op_is_one_line(store: Archive) -> None:
    store.save("main", run_of(1, TWO), collected=NOBODY)
    before = FILE.read_text().splitlines()
    more = simple_test({"aten::mul": 2, "aten::add": 4, "forward": 1}, node_id=A.node_id)
    store.save("main", run_of(1, more), collected=NOBODY)
    changed = [
        line
        for line in difflib.unified_diff(before, FILE.read_text().splitlines(), n=0, lineterm="")
        if not line.startswith(("@@", "---", "+++"))
    ]
    assert changed == [
        '-    "ops.count": 5,',
        '+    "ops.count": 6,',
        '-      "count": 3',
        '+      "count": 4',
    ]


def test_counts_are_a_run_like_any_other(store: Archive) -> None:
    saved = store.save("main", run_of(1, TWO), collected=NOBODY)
    assert saved.place == str(FILE)
    (entry,) = store.entries("main")
    run = store.load(entry)
    assert run == replace(read_run(FILE), name="main")
    (test,) = run.tests
    assert test.processes == TWO.processes
    assert "total.self_cpu_time_total" not in test.totals
    assert {row.name: row.count.low for row in test.ops} == {"aten::mul": 2, "aten::add": 3, "forward": 1}
    assert run.environment.fingerprint == {"python": "3.11", "torch": "2.13.0"}


@pytest.mark.parametrize("run", [simple_run(A), run_of(1, A, dirty=True)], ids=["no commit", "changes"])
def test_a_save_says_nothing_of_a_key_that_the_file_has_not(store: Archive, run: Run) -> None:
    assert store.save("main", run, collected=NOBODY).notes == ()


def test_selection_replaces_only_what_ran(store: Archive) -> None:
    store.save("main", run_of(1, A, B), collected=NOBODY)
    both = FILE.read_bytes()
    store.save("main", run_of(2, B), collected=NOBODY)
    assert FILE.read_bytes() == both


@pytest.mark.parametrize(
    ("old", "new"),
    [("{", "<<<<<<< HEAD\n{"), ('"schema_version": 2', '"schema_version": 99')],
    ids=["git's conflict", "a later release's file"],
)
def test_file_that_cannot_be_read_is_not_replaced(store: Archive, old: str, new: str) -> None:
    store.save("main", run_of(1, A, B), collected=NOBODY)
    FILE.write_text(FILE.read_text().replace(old, new, 1))
    damaged = FILE.read_bytes()
    with pytest.raises(DocumentError, match=r"main\.counts\.json"):
        store.save("main", run_of(2, A), collected=NOBODY)
    assert FILE.read_bytes() == damaged


def test_newest_of_another_stores_runs_is_taken(store: Archive, tmp_path: Path) -> None:
    other = open_store("dir:.opprof", root=tmp_path)
    other.save("main", run_of(1, A), collected=NOBODY)
    other.save("main", run_of(2, TWO), collected=NOBODY)
    store.take(other, ["main"])
    assert store.load(store.entries("main")[0]).tests[0].totals["ops.count"] == TWO.totals["ops.count"]


def test_a_push_keeps_tests_and_takes_no_uncommitted_changes(store: Archive, tmp_path: Path) -> None:
    other = open_store("dir:.opprof", root=tmp_path)
    other.save("main", run_of(1, A), collected=NOBODY)
    other.save("main", run_of(2, A), collected=NOBODY)
    other.save("main", run_of(2, TWO, dirty=True, hours=1), collected=NOBODY)
    store.save("main", run_of(1, B), collected=NOBODY)
    assert store.take(other, ["main"]) == (
        "main: 1 run copied",
        "1 test that did not run kept from main",
    )
    kept = store.load(store.entries("main")[0])
    totals = {test.node_id: test.totals["ops.count"] for test in kept.tests}
    assert totals == {one.node_id: one.totals["ops.count"] for one in (A, B)}
    before = FILE.read_bytes()
    assert store.take(other, ["main"]) == ("main: 0 runs copied",)
    assert FILE.read_bytes() == before


def test_counts_that_are_pushed_again_replace_the_former(store: Archive, tmp_path: Path) -> None:
    other = open_store("dir:.opprof", root=tmp_path)
    store.save("main", run_of(1, A, B), collected=NOBODY)
    other.take(store, ["main"])
    store.save("main", run_of(2, TWO), collected=Collected(whole_paths=frozenset({"."})))
    assert other.take(store, ["main"]) == (
        "main: 1 run copied",
        "main was in both stores: they are joined, and the copied run wins",
    )
    kept = other.load(other.entries("main")[0])
    totals = {test.node_id: test.totals["ops.count"] for test in kept.tests}
    assert totals == {A.node_id: TWO.totals["ops.count"], B.node_id: B.totals["ops.count"]}
    assert other.take(store, ["main"]) == ("main: 0 runs copied",)


def test_names_are_listed_until_removed(store: Archive, tmp_path: Path) -> None:
    assert (store.names(), store.entries("main")) == ((), ())
    for name in ("main", "feature/x"):
        store.save(name, run_of(1), collected=NOBODY)
    write_run(tmp_path / "ci" / ".hidden.counts.json", simple_run(A))
    assert store.names() == ("feature/x", "main")
    store.remove("main", is_meant=lambda entry: True)
    assert store.names() == ("feature/x",)


def test_a_test_without_counts_keeps_no_other_from_being_kept(store: Archive) -> None:
    store.save("main", simple_run(A, replace(B, totals={}, ops=())), collected=NOBODY)
    kept = store.load(store.entries("main")[0])
    assert {test.node_id for test in kept.tests if test.totals} == {A.node_id}


def test_run_without_counts_is_refused(store: Archive) -> None:
    bare = dataclasses.replace(A, totals={})
    with pytest.raises(UsageError, match="main: the run has no exact counts to store"):
        store.save("main", run_of(1, bare), collected=NOBODY)
    assert store.names() == ()


def verdict_beside_counts(before: TestResult, now: TestResult) -> Verdict | None:
    (stored,) = run_from_bytes(reviewable(run_of(1, before), name="main"), where="main").tests
    return compared(stored, now).verdict


@pytest.mark.parametrize("path", ["model.py: Encoder.forward.count", "cpu_memory.peak"])
def test_a_gate_on_what_is_not_stored_is_inconclusive(path: str) -> None:
    calls, peak = (Samples.constant(value, steps=TWO.steps) for value in (2, 900))
    test = replace(
        TWO,
        ops=(*TWO.ops, OpRow(name="model.py: Encoder.forward", kind=OpKind.CALL, metrics={"count": calls})),
        totals={**TWO.totals, "cpu_memory.peak": peak},
        sources=(*TWO.sources, "python", "memory"),
    )
    assert verdict_beside_counts(test, test) is Verdict.PASS
    assert verdict_beside_counts(test, replace(test, gates={path: "exact"})) is Verdict.INCONCLUSIVE


def test_work_of_the_background_is_not_new() -> None:
    beside = replace(TWO.ops[0], background=True)
    test = replace(TWO, ops=(*TWO.ops, beside))
    fewer = simple_test({"aten::mul": 2, "aten::add": 2, "forward": 1}, node_id=A.node_id)
    assert verdict_beside_counts(test, replace(fewer, ops=(*fewer.ops, beside))) is Verdict.IMPROVED
