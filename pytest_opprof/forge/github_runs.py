"""Find the pull request, the artifact and the merge base of a workflow's run on GitHub."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_opprof.forge.client import Api
from pytest_opprof.forge.github import READS_PULLS, check_commit

_UNKNOWN = frozenset({404, 409, 422})
_READS_ACTIONS = "the workflow needs `permissions: actions: read`"
_READS_CODE = "the workflow needs `permissions: contents: read`"


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """An open pull request."""

    number: int
    head: str  # its current commit
    head_repository: str  # that commit's repository; empty if it was deleted
    base_repository: str  # the target repository
    base_branch: str
    base: str  # the target branch's commit, as of GitHub's last check


def open_pull_requests(api: Api, repository: str, *, owner: str, branch: str) -> tuple[PullRequest, ...]:
    """The open pull requests of a repository from a branch of `owner`."""
    params: Mapping[str, str | int] = {"state": "open", "head": f"{owner}:{branch}"}
    pages = api.pages(f"/repos/{repository}/pulls", needs=READS_PULLS, params=params)
    return tuple(
        PullRequest(
            number=item.number("number"),
            head=item.text("head", "sha"),
            head_repository=item.text("head", "repo", "full_name") if item.has("head", "repo") else "",
            base_repository=item.text("base", "repo", "full_name"),
            base_branch=item.text("base", "ref"),
            base=item.text("base", "sha"),
        )
        for page in pages
        for item in page.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """An upload of a workflow's run."""

    number: int
    size: int  # compressed bytes
    run: int
    head: str  # the run's commit


def newest_artifact(api: Api, repository: str, *, run: int, name: str) -> Artifact | None:
    """A run's newest artifact of a name, from any attempt; None without one."""
    path = f"/repos/{repository}/actions/runs/{run}/artifacts"
    pages = api.pages(path, needs=_READS_ACTIONS, params={"name": name})
    found = [
        Artifact(
            number=item.number("id"),
            size=item.number("size_in_bytes"),
            run=item.number("workflow_run", "id"),
            head=item.text("workflow_run", "head_sha"),
        )
        for page in pages
        for item in page.items("artifacts")
        if item.text("name") == name and not item.is_set("expired")
    ]
    return max(found, key=lambda artifact: artifact.number, default=None)


def download_artifact(api: Api, repository: str, artifact: Artifact, *, most: int) -> bytes:
    """Download an artifact's zip; DocumentError if it has more than `most` bytes."""
    path = f"/repos/{repository}/actions/artifacts/{artifact.number}/zip"
    return api.download(path, needs=_READS_ACTIONS, most=most)


def merge_base(api: Api, repository: str, *, base: str, head: str) -> str | None:
    """The merge base of two commits; None if GitHub knows none."""
    path = f"/repos/{repository}/compare/{base}...{head}"
    # The commits and files in between are not needed, so ask for as few as possible.
    answer = api.ask("GET", path, needs=_READS_CODE, params={"per_page": 1}, also=_UNKNOWN)
    if answer.status in _UNKNOWN:
        return None
    return check_commit(answer.fields.text("merge_base_commit", "sha"), where=answer.asked)
