"""From the run of a workflow of GitHub to its pull request, its artifact, and where its work began."""

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
    """An open pull request.

    Attributes:
        head: The commit that it is at.
        head_repository: Where that is; empty where it was deleted.
        base_repository: Where it would be merged.
        base: The commit of the base branch, as GitHub last looked.
    """

    number: int
    head: str
    head_repository: str
    base_repository: str
    base_branch: str
    base: str


def open_pull_requests(api: Api, repository: str, *, owner: str, branch: str) -> tuple[PullRequest, ...]:
    """The open pull requests of a repository whose head is a branch of an owner's.

    Raises:
        ForgeError: GitHub does not list them.
    """
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
    """What a run of a workflow uploaded.

    Attributes:
        size: Bytes, compressed.
        head: The commit that its run was of.
    """

    number: int
    size: int
    run: int
    head: str


def newest_artifact(api: Api, repository: str, *, run: int, name: str) -> Artifact | None:
    """The last artifact of that name that a run has uploaded, in any attempt; None without one.

    Raises:
        ForgeError: GitHub does not list them.
    """
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
    """The zip of an artifact.

    Raises:
        DocumentError: It is more than `most` bytes.
        ForgeError: GitHub does not hand it over.
    """
    path = f"/repos/{repository}/actions/artifacts/{artifact.number}/zip"
    return api.download(path, needs=_READS_ACTIONS, most=most)


def merge_base(api: Api, repository: str, *, base: str, head: str) -> str | None:
    """The commit where a commit left another's history; None where GitHub knows of none.

    Raises:
        ForgeError: GitHub does not answer.
    """
    path = f"/repos/{repository}/compare/{base}...{head}"
    # Of the commits and files between the two nothing is needed: as few as can be.
    answer = api.ask("GET", path, needs=_READS_CODE, params={"per_page": 1}, also=_UNKNOWN)
    if answer.status in _UNKNOWN:
        return None
    return check_commit(answer.fields.text("merge_base_commit", "sha"), where=answer.asked)
