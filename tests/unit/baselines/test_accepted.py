"""The list of accepted values: its entries, their order, and errors of a bad list."""

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.documents.strategies import BIGGEST, commits, moments, names, simple_run, simple_test

from pytest_opprof.baselines.accepted import (
    ACCEPTED,
    Acceptance,
    accept,
    accepted_from_document,
    prune,
    read_accepted,
    with_acceptances,
)
from pytest_opprof.errors import DocumentError, StoreError
from pytest_opprof.results.run import CarriedFrom, Commit, Outcome

NOW = datetime(2026, 1, 3, tzinfo=UTC)
MAIN = Commit(id="1a2b3c4" + "0" * 33, dirty=False, branch="main")


def entry(**others: Any) -> Acceptance:
    values: dict[str, Any] = {
        "test": "tests/test_a.py::test_x",
        "op": None,
        "metric": "ops.count",
        "value": 355,
        "base": 354,
        "reason": "clones its input, as the caller changes it",
        "baseline": "main",
        "created": NOW,
        "commit": MAIN,
    }
    return Acceptance(**(values | others))


GONE = entry(metric=None, value=None, base=None)
CLONE = entry(op="aten::clone", metric="count", value=2)

entries = (
    st.builds(
        Acceptance,
        test=names.map("tests/test_a.py::{}".format),
        op=st.just(None),
        metric=st.sampled_from(["ops.count", "cpu_memory.allocated"]),
        value=st.integers(-BIGGEST, BIGGEST),
        base=st.none() | st.integers(-BIGGEST, BIGGEST),
        reason=names,
        baseline=st.none() | st.just("main"),
        created=moments,
        commit=st.none() | commits,
    )
    | st.builds(
        Acceptance,
        test=names.map("tests/test_a.py::{}".format),
        op=names,
        metric=st.sampled_from(["count", "flops"]),
        value=st.integers(0, BIGGEST),
        reason=names,
        baseline=st.none(),
        created=moments,
    )
    | names.map(lambda name: replace(GONE, test=f"tests/test_a.py::{name}"))
)


@given(st.lists(entries, max_size=4, unique_by=lambda one: one.key))
def test_entries_survive_the_file(tmp_path_factory: pytest.TempPathFactory, kept: list[Acceptance]) -> None:
    folder = tmp_path_factory.mktemp("project")
    accept(folder, kept)
    assert read_accepted(folder) == {one.key: one for one in kept}


def test_a_project_without_the_file_has_accepted_nothing(tmp_path: Path) -> None:
    assert read_accepted(tmp_path / ".opprof") == {}
    assert list(tmp_path.iterdir()) == []


def test_file_does_not_depend_on_entry_order(tmp_path: Path) -> None:
    one, other = entry(test="tests/test_b.py::test_y"), CLONE
    for folder, order in (("a", (one, other)), ("b", (other, one))):
        for each in order:
            accept(tmp_path / folder, [each])
    text = (tmp_path / "a" / ACCEPTED).read_text()
    assert text == (tmp_path / "b" / ACCEPTED).read_text()
    assert text.index("test_x") < text.index("test_y")
    # one value per line, so that a reviewer sees what is new
    assert '\n      "reason": "clones its input, as the caller changes it",\n' in text


def test_accepting_again_replaces_the_entry(tmp_path: Path) -> None:
    accept(tmp_path, [entry(), CLONE])
    accept(tmp_path, [entry(value=360, reason="and one more")])
    known = read_accepted(tmp_path)
    assert {one.value for one in known.values()} == {360, 2}
    assert known[entry().key].reason == "and one more"


def test_readers_words_stay_readable(tmp_path: Path) -> None:
    path = accept(tmp_path, [entry(reason="größer, 日本")])
    assert "größer, 日本" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "this is not JSON"),
        ("[]", "this is not a file of pytest-opprof"),
        ('{"kind": "opprof-run"}', "this is a run, but a accepted is needed"),
        ('{"kind": "opprof-accepted", "schema_version": 1}', "'accepted' is missing"),
        ('{"kind": "opprof-accepted", "schema_version": 2, "accepted": []}', "is newer than 1"),
    ],
    ids=["cut off", "foreign", "a run", "incomplete", "newer"],
)
def test_a_corrupt_file_is_a_sentence_and_nothing_is_lost(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / ACCEPTED).write_text(text)
    for use in (lambda: read_accepted(tmp_path), lambda: accept(tmp_path, [entry()])):
        with pytest.raises(DocumentError, match=sentence):
            use()
    assert (tmp_path / ACCEPTED).read_text() == text


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"value": 1.5}, "accepted[0].value: 1.5 is not an integer"),
        ({"value": None}, "accepted[0].value: a metric needs a value"),
        ({"metric": None}, "accepted[0].metric: no metric None"),
        ({"reason": ""}, "accepted[0].reason: 0 characters are fewer than 1"),
        ({"created": "2026-02-31T00:00:00+00:00"}, "accepted[0].created"),
    ],
)
def test_a_bad_entry_names_its_place(tmp_path: Path, change: dict[str, object], sentence: str) -> None:
    path = accept(tmp_path, [entry()])
    document = json.loads(path.read_text())
    document["accepted"][0] |= change
    path.write_text(json.dumps(document))
    with pytest.raises(DocumentError) as caught:
        read_accepted(tmp_path)
    assert sentence in str(caught.value)


def test_later_releases_metric_is_left_alone(tmp_path: Path) -> None:
    path = accept(tmp_path, [entry()])
    document = json.loads(path.read_text())
    document["accepted"].append(document["accepted"][0] | {"metric": "new.total", "new_member": 1})
    path.write_text(json.dumps(document))
    assert list(read_accepted(tmp_path)) == [entry().key]
    accept(tmp_path, [CLONE])
    told = json.loads(path.read_text())["accepted"]
    assert [one["metric"] for one in told] == ["new.total", "ops.count", "count"]
    assert told[0]["new_member"] == 1
    sentence = r"accepted\[1\]\.metric: no metric 'new\.total'"
    with pytest.raises(DocumentError, match=sentence):
        accepted_from_document(document, where="accepted.json")


def test_two_entries_about_the_same_are_refused(tmp_path: Path) -> None:
    path = accept(tmp_path, [entry()])
    document = json.loads(path.read_text())
    document["accepted"] *= 2
    path.write_text(json.dumps(document))
    with pytest.raises(DocumentError, match="twice"):
        read_accepted(tmp_path)


def test_unwritable_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        accept(tmp_path / "file" / ".opprof", [entry()])


RUN = simple_run(simple_test({"aten::clone": 2}), name="main", commit=MAIN)


def test_a_baseline_of_the_name_replaces_entries(tmp_path: Path) -> None:
    other = entry(test="tests/test_a.py::test_not_run")
    accept(tmp_path, [entry(), CLONE, other])
    assert {one.key for one in prune(tmp_path, RUN)} == {entry().key, CLONE.key}
    assert read_accepted(tmp_path) == {other.key: other}
    assert prune(tmp_path, RUN) == ()


@pytest.mark.parametrize(
    "run",
    [
        replace(RUN, name="release"),
        replace(RUN, commit=replace(MAIN, branch="topic")),
        replace(RUN, tests=(replace(RUN.tests[0], outcome=Outcome.FAILED),)),
        replace(
            RUN, tests=(replace(RUN.tests[0], carried_from=CarriedFrom(run_id="a", created=RUN.created)),)
        ),
    ],
    ids=["of another name", "on another branch", "without a measurement", "carried over"],
)
def test_a_baseline_that_does_not_have_the_value_leaves_entries(tmp_path: Path, run: Any) -> None:
    path = accept(tmp_path, [entry()])
    before = path.read_bytes()
    assert prune(tmp_path, run) == ()
    assert path.read_bytes() == before


def test_missing_test_entry_ends_with_a_new_baseline(tmp_path: Path) -> None:
    elsewhere = replace(GONE, test="tests/test_b.py::test_y")
    accept(tmp_path, [GONE, elsewhere])
    carried = replace(RUN.tests[0], carried_from=CarriedFrom(run_id="a", created=RUN.created))
    assert prune(tmp_path, replace(RUN, tests=(carried,))) == (elsewhere,)
    assert prune(tmp_path, RUN) == (GONE,)


def test_counts_to_commit_replace_entries_on_any_branch(tmp_path: Path) -> None:
    accept(tmp_path, [entry()])
    run = replace(RUN, commit=replace(MAIN, branch="topic"))
    assert prune(tmp_path, run, is_committed=True) == (entry(),)


def test_a_run_keeps_which_entries_its_tests_were_measured_with() -> None:
    both = {one.key: one for one in (entry(), CLONE, entry(test="tests/test_a.py::test_y"))}
    (test,) = with_acceptances(RUN, both).tests
    assert test.accepted == {"ops.count": NOW, "aten::clone.count": NOW}
    assert with_acceptances(RUN, {}) == RUN


@pytest.mark.parametrize("commit", [None, replace(MAIN, branch=None)], ids=["no git", "a CI's checkout"])
def test_name_decides_without_a_known_branch(tmp_path: Path, commit: Commit | None) -> None:
    accept(tmp_path, [entry()])
    assert prune(tmp_path, replace(RUN, commit=commit)) == (entry(),)


ACCEPTS = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from pytest_opprof.baselines.accepted import Acceptance, accept

folder, name = Path(sys.argv[1]), sys.argv[2]
for number in range(10):
    accept(folder, [Acceptance(
        test=f"t.py::test_{name}_{number}", op=None, metric="ops.count", value=1, reason="so",
        baseline=None, created=datetime.now(UTC),
    )])
"""


def test_concurrent_acceptances_lose_nothing(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", ACCEPTS, str(tmp_path), name]) for name in ("a", "b")
    ]
    assert [process.wait(timeout=60) for process in processes] == [0, 0]
    assert len(read_accepted(tmp_path)) == 20
