"""Values from an event's file."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.forges.github_api import FORK, HEAD, NUMBER, REPOSITORY, pull_request_event, workflow_run_event

from pytest_opprof.errors import ForgeError, StoreError
from pytest_opprof.forge.event import Completed, Opened, read_event


def event_in(folder: Path, event: Any) -> Path:
    path = folder / "event.json"
    path.write_text(event if isinstance(event, str) else json.dumps(event), encoding="utf-8")
    return path


def test_pull_request_is_found_in_its_event(tmp_path: Path) -> None:
    found = read_event(event_in(tmp_path, pull_request_event()))
    assert found == Opened(repository=REPOSITORY, number=NUMBER, head=HEAD)


def test_run_that_ended_is_found_in_its_event(tmp_path: Path) -> None:
    assert read_event(event_in(tmp_path, workflow_run_event())) == Completed(
        repository=REPOSITORY,
        run=90,
        number=4,
        attempt=1,
        cause="pull_request",
        head=HEAD,
        branch="topic",
        head_repository=FORK,
        url=f"https://github.com/{REPOSITORY}/actions/runs/90",
    )


def test_deleted_fork_has_no_name(tmp_path: Path) -> None:
    found = read_event(event_in(tmp_path, workflow_run_event(head_repository=None, head_branch=None)))
    assert isinstance(found, Completed)
    assert (found.head_repository, found.branch) == ("", "")


def test_other_events_have_no_pull_request(tmp_path: Path) -> None:
    assert read_event(event_in(tmp_path, {"ref": "refs/heads/main"})) is None


WRONG = {
    "no JSON": ("{", "this is not JSON"),
    "key twice": ('{"a": 1, "a": 2}', "occurs twice"),
    "a list": ("[]", None),
    "no commit": (workflow_run_event(head_sha="main"), "'main' is not a commit"),
    "a short commit": (workflow_run_event(head_sha="abc1234"), "is not a commit"),
    "commit with more": (workflow_run_event(head_sha=f"{HEAD}/../x"), "is not a commit"),
    "repository with more": (
        workflow_run_event(head_repository={"full_name": "a/b/c"}),
        "is not a repository",
    ),
    "dots": (workflow_run_event(head_repository={"full_name": "a/.."}), "is not a repository"),
    "number as text": (workflow_run_event(id="90"), r"there is no number at id"),
    "a negative number": (workflow_run_event(run_attempt=-1), r"there is no number at run_attempt"),
    "a number of 19 digits": (workflow_run_event(run_number=10**18), r"there is no number at run_number"),
    "number as truth": (workflow_run_event(run_number=True), r"there is no number at run_number"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_event_is_reported(name: str, tmp_path: Path) -> None:
    event, why = WRONG[name]
    path = event_in(tmp_path, event)
    if why is None:
        assert read_event(path) is None
        return
    with pytest.raises(ForgeError, match=why):
        read_event(path)


def test_missing_event_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no such file"):
        read_event(tmp_path / "event.json")
