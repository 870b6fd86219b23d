"""An experiment's files on disk."""

import json
import sys
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.errors import DocumentError, UsageError
from pytest_opprof.experiment.commits import Head
from pytest_opprof.experiment.experiment_store import Death, Kept, Plan, begin, named, resumable, unfinished
from pytest_opprof.experiment.interleave import Side, Turn
from pytest_opprof.experiment.request import Request, kept_for
from pytest_opprof.release import version
from pytest_opprof.results.run import Commit

PLAN = Plan(
    base="1" * 40,
    head="2" * 40,
    prefix="",
    arguments=("tests", "-k", "a or b"),
    setup="make",
    python=".venv/bin/python",
    processes=12,
    steps=15,
    max_time=1.0,
    seed=7,
    opprof_version="0.1.0",
)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TURN = Turn(index=3, side=Side.HEAD, hash_seed=9)
DEATH = Death(round="first", index=2, side="base", how="killed by SIGKILL")


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return begin(tmp_path, PLAN, now=NOW)


def test_stored_experiment_is_found_again(tmp_path: Path, kept: Kept) -> None:
    run = simple_run(simple_test({"aten::mul": 2}))
    kept.keep("first", TURN, run)
    kept.bury(DEATH)
    kept.bury(replace(DEATH, index=5))
    (again,) = unfinished(tmp_path)
    assert (again.plan, again.name, again.done) == (PLAN, kept.name, 1)
    assert again.run("first", TURN) == run
    assert again.run("confirm", TURN) is None
    assert again.run("first", replace(TURN, index=4)) is None
    assert again.deaths() == [DEATH, replace(DEATH, index=5)]
    assert named(tmp_path, kept.name).plan == PLAN


def test_another_interpreter_does_not_resume(tmp_path: Path) -> None:
    plan = replace(PLAN, opprof_version=version(), interpreter=sys.executable)
    head = Head(commit=Commit(id=PLAN.head, dirty=False))

    def resumed(name: str) -> Kept:
        request = Request(base="main", arguments=PLAN.arguments, resume=name)
        return kept_for(request, root=tmp_path, base=PLAN.base, head=head, prefix=PLAN.prefix)

    other = begin(tmp_path, replace(plan, interpreter="/elsewhere/python"), now=NOW)
    with pytest.raises(UsageError, match="that experiment has another interpreter: leave out --resume"):
        resumed(other.name)
    with pytest.raises(UsageError, match="no unfinished experiment has these options"):
        resumed("newest")
    assert resumed(begin(tmp_path, plan, now=NOW).name).plan == plan


def test_git_ignores_experiments(tmp_path: Path, kept: Kept) -> None:
    assert (tmp_path / ".opprof" / "ab" / ".gitignore").read_text() == "*\n"


def test_newest_unfinished_comes_first(tmp_path: Path) -> None:
    old, middle, new = (begin(tmp_path, PLAN, now=NOW + timedelta(hours=hour)) for hour in range(3))
    middle.finish()
    assert [kept.name for kept in unfinished(tmp_path)] == [new.name, old.name]
    with pytest.raises(UsageError, match="it is finished; leave out --resume"):
        named(tmp_path, middle.name)


def test_few_experiments_of_each_kind_are_kept(tmp_path: Path) -> None:
    cut_short = [begin(tmp_path, PLAN, now=NOW + timedelta(hours=hour)) for hour in range(8)]
    done = []
    with cut_short[1].held():  # resumed elsewhere
        for hour in range(8):
            done.append(begin(tmp_path, PLAN, now=NOW + timedelta(hours=hour)))
            done[-1].finish()
    assert [kept.folder.exists() for kept in done] == [*[False] * 3, *[True] * 5]
    assert [kept.folder.exists() for kept in cut_short] == [False, True, False, *[True] * 5]


def test_only_planned_processes_are_counted_of_a_total(tmp_path: Path) -> None:
    kept = begin(tmp_path, replace(PLAN, processes=1), now=NOW)
    run = simple_run()
    told = []
    for name in ("first", "confirm"):
        for index, side in enumerate(Side):
            kept.keep(name, Turn(index=index, side=side, hash_seed=1), run)
            told.append(resumable(tmp_path).partition(" ")[2])
    assert told == ["(1 of 2 processes)", "(2 processes)", "(3 processes)", "(4 processes)"]


def test_an_unknown_name_says_which_there_are(tmp_path: Path, kept: Kept) -> None:
    with pytest.raises(UsageError, match=rf"--resume=tests: no such experiment .*: {kept.name}"):
        named(tmp_path, "tests")


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"base": 1}',
        "[]",
        *(
            json.dumps(asdict(PLAN) | {field: value})
            for field, value in {
                "base": 1,
                "arguments": [1],
                "steps": "5",
                "processes": 0,
                "seed": None,
                "max_time": -1,
            }.items()
        ),
    ],
)
def test_a_plan_of_another_release_is_passed_over(tmp_path: Path, kept: Kept, text: str) -> None:
    (kept.folder / "plan.json").write_text(text)
    assert list(unfinished(tmp_path)) == []
    with pytest.raises(DocumentError, match="this is not a plan that this release can read"):
        named(tmp_path, kept.name)


@pytest.mark.parametrize("text", ["{", "1", "[1]", '[{"round": "first"}]', '[{"other": 1}]'])
def test_damaged_list_of_deaths_is_refused(kept: Kept, text: str) -> None:
    (kept.folder / "deaths.json").write_text(text)
    with pytest.raises(DocumentError, match=r"not JSON|not a list of crashed processes"):
        kept.deaths()


def test_two_processes_cannot_resume_one_experiment(tmp_path: Path, kept: Kept) -> None:
    other = named(tmp_path, kept.name)
    with kept.held(), pytest.raises(UsageError, match="another process is already resuming it"), other.held():
        pass
    with other.held():
        pass


def test_plans_name_what_differs() -> None:
    assert PLAN.differences(PLAN) == []
    assert PLAN.differences(replace(PLAN, seed=8, setup="")) == ["setup", "seed"]
