"""The event's subject: an open pull request, and an artifact of the finished run."""

from typing import Any

import pytest
from support.forges.fork_jobs import REFUSED, RUN, Job, uploaded
from support.forges.github_api import pull

pytest.importorskip("httpx", reason="httpx is not installed: see the dev extra")


@pytest.mark.parametrize(
    ("others", "pulls", "why"),
    [
        ({"event": "push"}, None, "the finished run was for the event push"),
        ({"head_repository": None}, None, "the measured branch no longer exists"),
        ({}, [], "no open pull request is at bbbbbbb"),
        ({}, [pull(head="e" * 40)], "no open pull request is at bbbbbbb"),
        ({}, [pull(fork="somebody/else")], "no open pull request is at bbbbbbb"),
        ({}, [pull(), pull(number=18, base="next")], "2 open pull requests are at bbbbbbb"),
    ],
    ids=["push", "deleted fork", "closed", "moved on", "same branch of another fork", "two"],
)
def test_without_its_pull_request_nothing_is_commented(
    job: Job, others: dict[str, Any], pulls: list[Any] | None, why: str
) -> None:
    job.save(4)
    job.upload(uploaded())
    job.event(**others)
    if pulls is not None:
        job.api.pulls = pulls
    assert job.comment() == 0
    assert why in job.told
    assert why in job.summary
    assert job.written_to == set()


@pytest.mark.parametrize("which", ["none", "expired", "of another run", "of another name"])
def test_missing_artifact_is_reported(job: Job, which: str) -> None:
    job.save(4)
    if which != "none":
        job.upload(uploaded(), name="other" if which == "of another name" else "opprof-run")
        job.api.artifacts[0]["expired"] = which == "expired"
        job.api.artifacts[0]["workflow_run"]["id"] = 91 if which == "of another run" else RUN
    assert job.comment() == 0
    assert "the finished run uploaded no artifact opprof-run: its log says why" in job.summary
    assert job.api.bodies == [], "of no news there is no comment"


def test_existing_comment_says_that_results_are_missing(job: Job) -> None:
    job.save(4)
    job.upload(uploaded(4))
    job.comment()
    assert "PASS" in job.body
    job.api.head = "e" * 40
    job.event(head_sha="e" * 40, id=91, run_number=5)
    assert job.comment() == 0
    assert "### opprof: no result" in job.body
    assert "PASS" not in job.body


def test_artifact_of_another_commit_than_the_events_is_refused(job: Job) -> None:
    job.save(4)
    job.upload(uploaded(), head="e" * 40)
    assert job.comment() == REFUSED
    assert "it belongs to another run or commit" in job.summary
