"""A comparison on a pull request: the page rendered, the job's summary written, the comment kept.

The summary comes first, so that it is there where the forge refuses the comment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from pytest_opprof.compare.document import write_comparison
from pytest_opprof.errors import DocumentError, UsageError
from pytest_opprof.forge.ci_environment import GitHubJob, GitLabJob
from pytest_opprof.forge.client import Api
from pytest_opprof.forge.event import Completed, read_event
from pytest_opprof.forge.fork_verdict import Baselines, Compared, NoResult, compare_uploaded, unusable
from pytest_opprof.forge.github import github_conversation, open_github
from pytest_opprof.forge.gitlab import gitlab_conversation
from pytest_opprof.forge.sticky import Marker, keep_comment, sticky_key
from pytest_opprof.report.markdown import Links, gitlab_note, job_summary, markdown_comment
from pytest_opprof.report.markdown_text import sentence_in_code
from pytest_opprof.report.summary import Judged, Summary
from pytest_opprof.results.files import store_error

DEFAULT_CONFIGURATION = "default"
_NOWHERE = "no comment was written: this job belongs to no pull request"


class When(StrEnum):
    """When a pull request without a comment gets one; one that is there is always kept up to date."""

    ALWAYS = "always"
    REGRESSED = "regressed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How to comment.

    Attributes:
        configuration: What was measured, such as ``cuda``: each has a comment of its own.
        when: Whether good news is worth a comment.
        author: Who the token writes as; None to ask.
        is_dry_run: Write nothing, and hand the comment to the caller.
    """

    configuration: str = DEFAULT_CONFIGURATION
    when: When = When.ALWAYS
    author: str | None = None
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What came of it.

    Attributes:
        told: A sentence, or in a dry run the comment.
        exit_code: Not 0 where an artifact was refused.
    """

    told: str
    exit_code: int = 0


def comment_text(judged: Judged, wish: Wish, *, is_gitlab: bool) -> str:
    """The comment as a pull request without a number would get it, without its marker."""
    render = gitlab_note if is_gitlab else markdown_comment
    return render(_named(judged, wish))


def comment_on_github(judged: Judged, job: GitHubJob, wish: Wish) -> Done:
    """Comment on the pull request that this job is of.

    Raises:
        ForgeError: GitHub does not answer, or refuses; the summary is written.
        UsageError: The job is of a workflow that runs for another one, or there is no token.
    """
    event = read_event(job.event)
    if isinstance(event, Completed):
        raise UsageError("this job runs for another workflow's run (workflow_run): add --from-event")
    judged = _named(judged, wish)
    if event is None:
        _append(job.summary, job_summary(judged, links=Links(summary=job.page)))
        return Done(told=_NOWHERE)
    links = Links(summary=job.page, source=job.source(event.repository, event.head))
    _append(job.summary, job_summary(judged, links=links))
    marker = _marker(wish, event.repository, event.number, head=event.head, run=job.run, attempt=job.attempt)
    body = markdown_comment(judged, marker=marker, links=links)
    with open_github(job.api_url, token=job.checked_token()) as api:
        conversation = github_conversation(api, event.repository, event.number, author=wish.author)
        return Done(told=keep_comment(conversation, body, creates=_is_worth_it(judged, wish)))


def comment_on_gitlab(judged: Judged, job: GitLabJob, wish: Wish) -> Done:
    """Comment on the merge request that this job is of.

    Raises:
        ForgeError: GitLab does not answer, or refuses.
        UsageError: There is no token.
    """
    if job.merge_request is None:
        return Done(told=_NOWHERE.replace("pull request", "merge request"))
    project, number = str(job.project), job.merge_request
    marker = _marker(wish, project, number, head=job.head, run=job.run, attempt=job.attempt)
    judged = _named(judged, wish)
    body = gitlab_note(judged, marker=marker, links=Links(summary=job.page, source=job.source))
    with Api(job.api_url, name="GitLab", headers=job.checked_token()) as api:
        conversation = gitlab_conversation(
            api, job.project, job.merge_request, is_job=job.is_job_token, author=wish.author
        )
        return Done(told=keep_comment(conversation, body, creates=_is_worth_it(judged, wish)))


def comment_from_event(
    job: GitHubJob,
    wish: Wish,
    *,
    baselines: Baselines,
    output: Path | None,
    now: datetime,
) -> Done:
    """Comment on the pull request whose own job has uploaded what it measured.

    Args:
        job: Of a ``workflow_run`` workflow.
        output: Where to write the comparison; None for nowhere.

    Raises:
        ForgeError: GitHub does not answer, or refuses; the summary is written.
        OpprofError: What this needs of its own cannot be read, or the comparison cannot be written.
    """
    event = read_event(job.event)
    if not isinstance(event, Completed):
        raise UsageError("--from-event is for workflows that run on workflow_run, and this one does not")
    with open_github(job.api_url, token=job.checked_token()) as api:
        found = compare_uploaded(api, event, baselines=baselines, now=now)
        if isinstance(found, Compared):
            try:
                page = _page_of(found, event, job, wish)
            except Exception as error:  # noqa: BLE001  # as where it is compared
                found = unusable(error, found.pull_request)
        if isinstance(found, NoResult):
            page = _page_without_result(found)
        elif output is not None:
            write_comparison(output, found.comparison)
        if wish.is_dry_run:
            return Done(told=page.comment, exit_code=page.exit_code)
        _append(job.summary, page.summary)
        return _written(api, event, found, page, wish)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """What is to be shown of an event: a comment without its marker, and the job's summary."""

    comment: str
    summary: str
    is_worth_it: bool  # for a pull request without a comment
    told: str = ""  # beside what became of the comment
    exit_code: int = 0


def _page_of(found: Compared, event: Completed, job: GitHubJob, wish: Wish) -> _Page:
    judged = _named(found.comparison, wish)
    links = Links(
        summary=job.page,
        traces=f"{event.url}#artifacts" if found.has_traces else None,
        source=job.source(event.head_repository, event.head),
    )
    return _Page(
        comment=markdown_comment(judged, links=links, self_reported=True),
        summary=job_summary(judged, links=links, self_reported=True),
        is_worth_it=_is_worth_it(judged, wish),
    )


def _page_without_result(found: NoResult) -> _Page:
    """What is said where there is nothing to compare: nowhere is it taken for a pass."""
    text = f"### opprof: no result\n\n{sentence_in_code(found.reason, width=1_000)}\n"
    return _Page(
        comment=text,
        summary=text,
        is_worth_it=False,
        told=found.reason,
        exit_code=DocumentError.exit_code if found.is_refused else 0,
    )


def _written(api: Api, event: Completed, found: Compared | NoResult, page: _Page, wish: Wish) -> Done:
    if found.pull_request is None:
        return Done(told=page.told, exit_code=page.exit_code)
    number = found.pull_request.number
    marker = _marker(wish, event.repository, number, head=event.head, run=event.number, attempt=event.attempt)
    conversation = github_conversation(api, event.repository, number, author=wish.author)
    done = keep_comment(conversation, f"{marker}\n{page.comment}", creates=page.is_worth_it)
    return Done(told="\n".join(filter(None, (page.told, done))), exit_code=page.exit_code)


def _marker(wish: Wish, place: str, number: int, *, head: str, run: int, attempt: int) -> str:
    """The first line of a comment on a pull request: which one it is."""
    return Marker(key=sticky_key(place, number, wish.configuration), head=head, run=run, attempt=attempt).line


def _append(summary: Path | None, text: str) -> None:
    """Add Markdown to the page of a job of GitHub Actions, which each step adds to; some jobs have none."""
    if summary is None:
        return
    try:
        with summary.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{text.rstrip()}\n\n")
    except OSError as error:
        raise store_error(summary, "cannot be written", error) from error


def _named(judged: Judged, wish: Wish) -> Judged:
    """With the name of its configuration, where there is more than one."""
    if wish.configuration == DEFAULT_CONFIGURATION:
        return judged
    return replace(judged, notes=(f"configuration {wish.configuration}", *judged.notes))


def _is_worth_it(judged: Judged, wish: Wish) -> bool:
    """Whether to write a comment where there is none: of what fails, and where there is no baseline."""
    if wish.when is When.ALWAYS:
        return True
    summary = Summary.of(judged)
    return summary.exact.base is None or any(test.is_failing for test in summary.tests)
