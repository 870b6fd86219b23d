"""The event that a workflow runs for, from the file that GitHub writes.

Anybody can choose a branch's name, so branch names in it must not reach a path or a shell.
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
    """A pull request's own event."""

    repository: str  # the target repository, ``owner/name``
    number: int
    head: str  # the pull request's commit then


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A ``workflow_run`` event: another workflow's run has ended."""

    repository: str  # the workflow's repository, ``owner/name``
    run: int  # the run's id
    number: int  # the run's number; a later run has a higher one
    attempt: int
    cause: str  # the event that it ran for
    head: str  # the commit that it ran for
    branch: str  # that commit's branch; its author chose the name
    head_repository: str  # the branch's repository; empty if it was deleted
    url: str  # the run's page


def read_event(path: Path) -> Opened | Completed | None:
    """Read an event; None if it is neither a pull request's nor the end of a workflow's run."""
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
