"""GitLab's API: the notes of a merge request."""

from __future__ import annotations

from typing import Final

from pytest_opprof.forge.client import Api
from pytest_opprof.forge.conversation import Conversation, Places

PRIVATE_TOKEN: Final = "PRIVATE-TOKEN"  # noqa: S105 - the header's name, not a token
JOB_TOKEN: Final = "JOB-TOKEN"  # noqa: S105 - same

_WRITES = (
    "set the CI/CD variable GITLAB_TOKEN to a project access token with the scope `api` and the role "
    "Reporter or above (a job's own token may not write notes); merge requests from forks do not see it"
)
_READS = "GITLAB_TOKEN needs the scope `api`"


def gitlab_conversation(
    api: Api, project: int, number: int, *, is_job: bool, author: str | None = None
) -> Conversation:
    """The notes of a merge request on GitLab; the user of a job's own token is the one that it runs as."""
    path = f"/projects/{project}/merge_requests/{number}"
    places = Places(
        request=path,
        head=("sha",),
        comments=f"{path}/notes",
        comment=f"{path}/notes",
        query={"sort": "asc"},
        update="PUT",
        gone=frozenset({404}),
        token="/job" if is_job else "/user",
        token_user=("user",) if is_job else (),
        user="author",
        name="username",
        reads=_READS,
        writes=_WRITES,
    )
    return Conversation(api, places, author=author)
