"""A fork's artifact chooses nothing: no pull request, baseline, gate, limit or acceptance."""

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.forges.artifacts import DOCUMENT, zip_of
from support.forges.fork_jobs import REFUSED, RUN, TEST, THEIRS, Job, run_of, uploaded
from support.forges.github_api import HEAD, MERGED_AT, NUMBER, pull

from pytest_opprof.baselines.accepted import Acceptance, accept
from pytest_opprof.baselines.archive import open_store
from pytest_opprof.compare.document import read_comparison
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.results.document import run_to_document
from pytest_opprof.results.run import Commit

pytest.importorskip("httpx", reason="httpx is not installed: see the dev extra")


def test_artifact_cannot_choose_the_pull_request(job: Job) -> None:
    job.api.pulls.append(pull(number=99, head="e" * 40, branch="other"))
    job.save(4)
    job.upload(uploaded(notes=["pull request 99", "#99", "pulls/99"], run_id="99"))
    job.comment()
    assert job.written_to == {f"/repos/owner/project/issues/{NUMBER}/comments"}


@pytest.mark.parametrize("field", ["pull_request", "number", "pr", "head_sha", "verdict", "comment"])
def test_a_field_that_runs_do_not_have_is_ignored(job: Job, field: str) -> None:
    job.api.pulls.append(pull(number=99, head="e" * 40, branch="other"))
    job.save(4)
    job.upload(uploaded(**{field: 99}))
    job.comment()
    assert job.written_to == {f"/repos/owner/project/issues/{NUMBER}/comments"}
    assert "REGRESSED" in job.body


def test_artifact_cannot_choose_the_branch(job: Job) -> None:
    job.save(4)
    job.upload(uploaded(name="main", commit={"id": HEAD, "dirty": False, "branch": "main"}))
    job.comment()
    head = read_comparison(job.folder.parent / "comparison.json").head
    assert (head.name, head.commit) == (None, Commit(id=HEAD, dirty=False))
    store = open_store("dir:.opprof", root=job.folder)
    assert [entry.commit for entry in store.entries("main")] == [MERGED_AT], "nothing became a baseline"


def test_artifact_cannot_choose_the_baseline_by_name(job: Job) -> None:
    job.save(4)
    job.save(50, name="generous")
    job.upload(uploaded(name="generous"))
    job.comment()
    assert job.verdict is Verdict.REGRESSED
    assert "main@aaaaaaa" in job.body


def test_artifact_cannot_choose_the_baseline_by_its_environment(job: Job) -> None:
    """An older baseline is from the environment that the artifact claims, and allows more."""
    git = ["git", "-c", "init.defaultBranch=main"]
    subprocess.run([*git, "init", "-q"], check=True)
    commits = []
    for _ in range(2):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
        found = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
        commits.append(found.stdout.strip())
    old, new = commits
    job.api.merge_base = new
    job.save(50, commit=old, environment=THEIRS)
    job.save(4, commit=new)
    job.upload(run_to_document(run_of(9, commit=HEAD, environment=THEIRS)))
    job.comment()
    assert f"main@{new[:7]}" in job.body
    assert job.verdict is Verdict.INCONCLUSIVE


def test_artifact_of_another_commit_is_refused(job: Job) -> None:
    job.save(4)
    job.upload(uploaded(commit={"id": "e" * 40, "dirty": False, "branch": None}))
    assert job.comment() == REFUSED
    assert (
        "it measured eeeeeee, but the pull request is at bbbbbbb, so it was not used. Check out"
        in job.summary
    )
    assert job.api.bodies == []


WITHOUT = {
    "none": (None, "it names no commit, so it was not used. The measuring job needs git"),
    "short": ({"id": HEAD[:7], "dirty": False, "branch": None}, "it measured bbbbbbb"),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_artifact_without_a_whole_commit_is_refused(job: Job, name: str) -> None:
    commit, told = WITHOUT[name]
    job.save(4)
    job.upload(uploaded(commit=commit))
    assert job.comment() == REFUSED
    assert told in job.summary


def test_artifact_cannot_switch_a_gate_off(job: Job) -> None:
    job.save(4)
    test = {**uploaded()["tests"][0], "gates": {"ops.count": "off", "aten::mul.count": "off"}}
    job.upload(uploaded(tests=[test]))
    job.comment()
    assert job.verdict is Verdict.REGRESSED
    assert "1 test has other gates or limits in the pull request" in job.body


def test_artifact_cannot_raise_a_limit(job: Job) -> None:
    job.save(4, limits={"aten::mul.count": 4})
    test = {**uploaded(5)["tests"][0], "limits": {"aten::mul.count": 1000}}
    job.upload(uploaded(tests=[test]))
    job.comment("--gate", "ops.count=off")
    assert job.verdict is Verdict.REGRESSED
    assert "aten::mul.count is 5 in each step, but the limit is <= 4" in job.body


@pytest.mark.parametrize("node_id", [TEST, "tests/test_a.py::test_another"])
@pytest.mark.parametrize(
    "limits",
    [
        {"aten::mul.count": 5},
        {"nonsense": 1},
        {f"{'?*a' * 300}{number}.count": "<= many" for number in range(1000)},
    ],
    ids=["a limit", "no metric", "patterns"],
)
def test_artifact_cannot_bring_limits(job: Job, node_id: str, limits: dict[str, Any]) -> None:
    job.save(9, node_id=node_id)
    test = {**uploaded(9)["tests"][0], "limits": limits, "gates": dict.fromkeys(limits, "exact")}
    job.upload(uploaded(tests=[test]))
    assert job.comment() == 0
    assert job.verdict in {Verdict.PASS, Verdict.NEW}
    assert "1 test has other gates or limits in the pull request: they hold once it is merged" in job.body


def test_tests_that_were_left_out_are_counted(job: Job) -> None:
    job.save(4)
    job.upload(uploaded(tests=[]))
    job.comment()
    assert "1 of the baseline's tests are not in the pull request's upload" in job.body
    assert "no test was measured" in job.body


def accepted(folder: Path) -> None:
    """Accept the rise in a project's list."""
    entry = Acceptance(
        test=TEST,
        op=None,
        metric="ops.count",
        value=9,
        reason="so",
        baseline="main",
        created=datetime(2026, 1, 1, tzinfo=UTC),
    )
    accept(folder, [entry])


def test_rise_accepted_on_our_branch_passes(job: Job) -> None:
    job.save(4)
    accepted(job.folder / ".opprof")
    job.upload(uploaded())
    job.comment()
    assert job.verdict is Verdict.ACCEPTED


def test_artifact_cannot_accept_its_own_rise(job: Job, tmp_path: Path) -> None:
    job.save(4)
    accepted(tmp_path / "fork")
    listed = (tmp_path / "fork" / "accepted.json").read_bytes()
    document = json.dumps(uploaded()).encode()
    job.api.upload(zip_of((DOCUMENT, document), (".opprof/accepted.json", listed)), run=RUN)
    assert job.comment() == REFUSED
    job.api.upload(zip_of((DOCUMENT, listed)), run=RUN)
    assert job.comment() == REFUSED
    job.upload(uploaded())
    job.comment()
    assert job.verdict is Verdict.REGRESSED
