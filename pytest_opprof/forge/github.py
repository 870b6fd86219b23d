"""GitHub's API: the comments of a pull request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_opprof.errors import ForgeError, ForgePermissionError
from pytest_opprof.forge.client import Api
from pytest_opprof.forge.sticky import Author, Comment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_opprof.forge.fields import Fields
    from pytest_opprof.forge.patience import Patience

API_URL: Final = "https://api.github.com"
# Who comments with the token of a workflow, which may not ask who it is. No person can have such a name.
ACTIONS_BOT: Final = Author(name="github-actions[bot]")
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_DOTS = frozenset({".", ".."})
_GONE = frozenset({404, 410})

_WRITES = (
    "the workflow needs `permissions: pull-requests: write`. Pull requests from forks never get it: comment "
    "on them from a workflow_run workflow, with --from-event"
)
READS_PULLS = "the workflow needs `permissions: pull-requests: read`"


def open_github(url: str, *, token: str, patience: Patience | None = None) -> Api:
    """GitHub's API, asked with a token.

    Raises:
        UsageError: there is no httpx, or no such address.
    """
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {token}",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    return Api(url, name="GitHub", headers=headers, patience=patience)


def check_repository(name: str, *, where: str) -> str:
    """A repository's ``owner/name``, safe to stand in the path of a request.

    Raises:
        ForgeError: it cannot be one.
    """
    if not _REPOSITORY.fullmatch(name) or not _DOTS.isdisjoint(name.split("/")):
        raise ForgeError(f"{where}: {name[:80]!a} is no repository")
    return name


def check_commit(text: str, *, where: str) -> str:
    """A commit's whole id, safe to stand in the path of a request.

    Raises:
        ForgeError: it cannot be one.
    """
    if not _COMMIT.fullmatch(text):
        raise ForgeError(f"{where}: {text[:80]!a} is no commit")
    return text


class GitHubConversation:
    """The comments of a pull request of GitHub.

    Args:
        api: GitHub's.
        repository: its ``owner/name``.
        number: of the pull request.
        author: the login that the token writes as; GitHub is asked unless it is given.
    """

    def __init__(self, api: Api, repository: str, number: int, *, author: str | None = None) -> None:
        self._api = api
        self._repository = f"/repos/{repository}"
        self._number = number
        self._author = author

    def head(self) -> str:
        """The commit that the pull request is at now.

        Raises:
            ForgeError: GitHub does not say.
        """
        path = f"{self._repository}/pulls/{self._number}"
        return self._api.ask("GET", path, needs=READS_PULLS).fields.text("head", "sha")

    def author(self) -> Author:
        """Who the token is of; of a workflow's or an app's, which may not ask, the bot of GitHub Actions.

        Raises:
            ForgeError: GitHub does not answer.
        """
        if self._author is not None:
            return Author(name=self._author)
        try:
            return _author(self._api.ask("GET", "/user", needs="").fields)
        except ForgePermissionError:
            return ACTIONS_BOT

    def comments(self) -> Sequence[Comment]:
        """All comments, on all pages.

        Raises:
            ForgeError: GitHub does not list them.
        """
        path = f"{self._repository}/issues/{self._number}/comments"
        pages = self._api.pages(path, needs=READS_PULLS)
        # Who deleted their account has left comments of nobody.
        return [_comment(item) for page in pages for item in page.items() if item.has("user")]

    def create(self, body: str) -> Comment:
        """Write a new comment.

        Raises:
            ForgeError: GitHub does not take it.
        """
        path = f"{self._repository}/issues/{self._number}/comments"
        return _comment(self._api.ask("POST", path, needs=_WRITES, content={"body": body}).fields)

    def update(self, number: int, body: str) -> bool:
        """Write a comment anew; False where it is gone.

        Raises:
            ForgeError: GitHub does not take it.
        """
        answer = self._api.ask(
            "PATCH", self._comment_path(number), needs=_WRITES, content={"body": body}, also=_GONE
        )
        return answer.status not in _GONE

    def delete(self, number: int) -> None:
        """Remove a comment; one that is gone is removed.

        Raises:
            ForgeError: GitHub does not let it go.
        """
        self._api.ask("DELETE", self._comment_path(number), needs=_WRITES, also=_GONE)

    def _comment_path(self, number: int) -> str:
        return f"{self._repository}/issues/comments/{number}"


def _comment(item: Fields) -> Comment:
    body = item.text("body") if item.has("body") else ""
    return Comment(number=item.number("id"), author=_author(item.inside("user")), body=body)


def _author(user: Fields) -> Author:
    return Author(name=user.text("login"), number=user.number("id"))
