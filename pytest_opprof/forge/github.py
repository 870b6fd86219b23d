"""GitHub's API: the comments of a pull request."""

from __future__ import annotations

import re
from typing import Final

from pytest_opprof.errors import ForgeError
from pytest_opprof.forge.client import Api
from pytest_opprof.forge.conversation import Author, Conversation, Places
from pytest_opprof.forge.retry import RetryPolicy

API_URL: Final = "https://api.github.com"
# The user of a workflow's token, which may not ask for its user. No person can have such a name.
ACTIONS_BOT: Final = Author(name="github-actions[bot]")
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_DOTS = frozenset({".", ".."})

_WRITES = (
    "the workflow needs `permissions: pull-requests: write`. Pull requests from forks never get it: comment "
    "on them from a workflow_run workflow, with --from-event"
)
READS_PULLS = "the workflow needs `permissions: pull-requests: read`"


def open_github(url: str, *, token: str, retry: RetryPolicy | None = None) -> Api:
    """GitHub's API, used with a token."""
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {token}",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    return Api(url, name="GitHub", headers=headers, retry=retry)


def check_repository(name: str, *, where: str) -> str:
    """Return a repository's ``owner/name`` if it is safe in a request's path; else raise ForgeError."""
    if not _REPOSITORY.fullmatch(name) or not _DOTS.isdisjoint(name.split("/")):
        raise ForgeError(f"{where}: {name[:80]!a} is not a repository")
    return name


def check_commit(text: str, *, where: str) -> str:
    """Return a commit's full id if it is safe in a request's path; else raise ForgeError."""
    if not _COMMIT.fullmatch(text):
        raise ForgeError(f"{where}: {text[:80]!a} is not a commit")
    return text


def github_conversation(api: Api, repository: str, number: int, *, author: str | None = None) -> Conversation:
    """The comments of a pull request on GitHub, of a repository ``owner/name``."""
    path = f"/repos/{repository}"
    places = Places(
        request=f"{path}/pulls/{number}",
        head=("head", "sha"),
        comments=f"{path}/issues/{number}/comments",
        comment=f"{path}/issues/comments",
        update="PATCH",
        gone=frozenset({404, 410}),
        token="/user",  # noqa: S106 - a path
        fallback=ACTIONS_BOT,
        user="user",
        name="login",
        reads=READS_PULLS,
        writes=_WRITES,
    )
    return Conversation(api, places, author=author)
