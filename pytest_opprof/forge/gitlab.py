"""GitLab's API: the notes of a merge request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_opprof.forge.client import Api
from pytest_opprof.forge.sticky import Author, Comment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_opprof.forge.fields import Fields
    from pytest_opprof.forge.patience import Patience

PRIVATE_TOKEN: Final = "PRIVATE-TOKEN"  # noqa: S105 - the header's name, not a token
JOB_TOKEN: Final = "JOB-TOKEN"  # noqa: S105 - same
_GONE = frozenset({404})

_WRITES = (
    "set the CI/CD variable GITLAB_TOKEN to a project access token with the scope `api` and the role "
    "Reporter or above (a job's own token may not write notes); merge requests from forks do not see it"
)
_READS = "GITLAB_TOKEN needs the scope `api`"


def open_gitlab(url: str, *, headers: Mapping[str, str], patience: Patience | None = None) -> Api:
    """GitLab's API, asked with a token.

    Args:
        url: as ``CI_API_V4_URL`` has it.
        headers: the token, under the name of its kind.
        patience: with limits and outages.

    Raises:
        UsageError: there is no httpx, or no such address.
    """
    return Api(url, name="GitLab", headers=headers, patience=patience)


class GitLabConversation:
    """The notes of a merge request of GitLab.

    Args:
        api: GitLab's.
        project: the number of the project that it would be merged into.
        number: of the merge request, within that project.
        is_job: whether the token is a job's own.
        author: the user name that the token writes as; GitLab is asked unless it is given.
    """

    def __init__(
        self, api: Api, project: int, number: int, *, is_job: bool, author: str | None = None
    ) -> None:
        self._api = api
        self._path = f"/projects/{project}/merge_requests/{number}"
        self._is_job = is_job
        self._author = author

    def head(self) -> str:
        """The commit that the merge request is at now.

        Raises:
            ForgeError: GitLab does not say.
        """
        return self._api.ask("GET", self._path, needs=_READS).fields.text("sha")

    def author(self) -> Author:
        """Who the token is of: a user, or the one that the job runs as.

        Raises:
            ForgeError: GitLab does not answer.
        """
        if self._author is not None:
            return Author(name=self._author)
        if self._is_job:
            return _author(self._api.ask("GET", "/job", needs=_READS).fields.inside("user"))
        return _author(self._api.ask("GET", "/user", needs=_READS).fields)

    def comments(self) -> Sequence[Comment]:
        """All notes, on all pages.

        Raises:
            ForgeError: GitLab does not list them.
        """
        pages = self._api.pages(f"{self._path}/notes", needs=_READS, params={"sort": "asc"})
        return [_note(item) for page in pages for item in page.items() if not item.is_set("system")]

    def create(self, body: str) -> Comment:
        """Write a new note.

        Raises:
            ForgeError: GitLab does not take it.
        """
        path = f"{self._path}/notes"
        return _note(self._api.ask("POST", path, needs=_WRITES, content={"body": body}).fields)

    def update(self, number: int, body: str) -> bool:
        """Write a note anew; False where it is gone.

        Raises:
            ForgeError: GitLab does not take it.
        """
        path = f"{self._path}/notes/{number}"
        answer = self._api.ask("PUT", path, needs=_WRITES, content={"body": body}, also=_GONE)
        return answer.status not in _GONE

    def delete(self, number: int) -> None:
        """Remove a note; one that is gone is removed.

        Raises:
            ForgeError: GitLab does not let it go.
        """
        self._api.ask("DELETE", f"{self._path}/notes/{number}", needs=_WRITES, also=_GONE)


def _note(item: Fields) -> Comment:
    return Comment(number=item.number("id"), author=_author(item.inside("author")), body=item.text("body"))


def _author(user: Fields) -> Author:
    return Author(name=user.text("username"), number=user.number("id"))
