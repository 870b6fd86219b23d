"""What GitHub says of why a workflow runs: the event's file, written by GitHub alone.

Names of branches in it are what their authors chose. They go into no path and no shell.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_opprof.errors import DocumentError, ForgeError
from pytest_opprof.forge.fields import Fields
from pytest_opprof.forge.github import check_commit, check_repository
from pytest_opprof.results.files import parse, read_bytes, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A pull request, of an event of its own.

    Attributes:
        repository: Where it would be merged, ``owner/name``.
        head: The commit that it was at.
    """

    repository: str
    number: int
    head: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A run of another workflow that has ended, of a ``workflow_run`` event.

    Attributes:
        repository: Whose workflow it is, ``owner/name``.
        run: Its id.
        number: Its number; a later run has a higher one.
        cause: The event that it ran for.
        head: The commit that it was for.
        branch: The branch of that commit, in the words of who named it.
        head_repository: The repository of that branch; empty where it was deleted.
        url: Its page.
    """

    repository: str
    run: int
    number: int
    attempt: int
    cause: str
    head: str
    branch: str
    head_repository: str
    url: str


def read_event(path: Path) -> Opened | Completed | None:
    """What the event is about; None where it is neither about a pull request nor the end of a run.

    Raises:
        StoreError: The file cannot be read.
        ForgeError: It is not an event of GitHub's.
    """
    where = shown(path)
    try:
        event = Fields(parse(read_bytes(path), where=where), where=where)
    except DocumentError as error:
        raise ForgeError(f"the event cannot be read: {error}") from error
    if event.has("workflow_run"):
        run = event.inside("workflow_run")
        has_head = run.has("head_repository")
        head_repository = run.text("head_repository", "full_name") if has_head else ""
        return Completed(
            repository=check_repository(event.text("repository", "full_name"), where=where),
            run=run.number("id"),
            number=run.number("run_number"),
            attempt=run.number("run_attempt"),
            cause=run.text("event"),
            head=check_commit(run.text("head_sha"), where=where),
            branch=run.text("head_branch") if run.has("head_branch") else "",
            head_repository=check_repository(head_repository, where=where) if has_head else "",
            url=run.text("html_url"),
        )
    if event.has("pull_request"):
        return Opened(
            repository=check_repository(event.text("repository", "full_name"), where=where),
            number=event.number("pull_request", "number"),
            head=check_commit(event.text("pull_request", "head", "sha"), where=where),
        )
    return None
