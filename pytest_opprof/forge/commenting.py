"""Comment on a pull request: render the comparison, write the job summary, update the comment.

The summary comes first, so it exists even if the forge refuses the comment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote

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
    """When to create a comment; an existing one is always updated."""

    ALWAYS = "always"
    REGRESSED = "regressed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How to comment."""

    # What was measured, such as ``cuda``; each configuration has its own comment.
    configuration: str = DEFAULT_CONFIGURATION
    when: When = When.ALWAYS
    author: str | None = None  # the token's user name; None to ask the forge
    # The folder in which pytest was started, as seen from the repository's top; empty at the top.
    folder: str = ""
    is_dry_run: bool = False  # write nothing, and return the comment


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The outcome."""

    told: str  # a sentence, or the comment in a dry run
    exit_code: int = 0  # not 0 if an artifact was refused


def comment_text(judged: Judged, wish: Wish, *, is_gitlab: bool) -> str:
    """The comment for a dry run, without its marker and links."""
    render = gitlab_note if is_gitlab else markdown_comment
    return render(_named(judged, wish))


def comment_on_github(judged: Judged, job: GitHubJob, wish: Wish) -> Done:
    """Comment on this job's pull request."""
    event = read_event(job.event)
    if isinstance(event, Completed):
        raise UsageError("this job runs for another workflow's run (workflow_run): add --from-event")
    judged = _named(judged, wish)
    if event is None:
        _append(job.summary, job_summary(judged, links=Links(summary=job.page)))
        return Done(told=_NOWHERE)
    # By default a job of a pull request checks out its merge with the base.
    _refuse_other_commit(judged, event.head, job.merge)
    links = Links(summary=job.page, source=_below(job.source(event.repository, _clean_commit(judged)), wish))
    _append(job.summary, job_summary(judged, links=links))
    marker = _marker(wish, event.repository, event.number, head=event.head, run=job.run, attempt=job.attempt)
    body = markdown_comment(judged, marker=marker, links=links)
    with open_github(job.api_url, token=job.checked_token()) as api:
        conversation = github_conversation(api, event.repository, event.number, author=wish.author)
        return Done(told=keep_comment(conversation, body, creates=_is_worth_it(judged, wish)))


def comment_on_gitlab(judged: Judged, job: GitLabJob, wish: Wish) -> Done:
    """Comment on this job's merge request."""
    if job.merge_request is None:
        return Done(told=_NOWHERE.replace("pull request", "merge request"))
    _refuse_other_commit(judged, job.head, job.commit)
    project, number = str(job.project), job.merge_request
    marker = _marker(wish, project, number, head=job.head, run=job.run, attempt=job.attempt)
    judged = _named(judged, wish)
    links = Links(summary=job.page, source=_below(job.source(_clean_commit(judged)), wish))
    body = gitlab_note(judged, marker=marker, links=links)
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
    """Comment, in a job of ``workflow_run``, on the pull request whose own job uploaded a run."""
    event = read_event(job.event)
    if not isinstance(event, Completed):
        raise UsageError("--from-event is for workflows that run on workflow_run, and this one does not")
    told, exit_code, is_worth_it = "", 0, False
    with open_github(job.api_url, token=job.checked_token()) as api:
        found = compare_uploaded(api, event, baselines=baselines, now=now)
        if isinstance(found, Compared):
            try:
                judged = _named(found.comparison, wish)
                text, summary = _texts_of(judged, found, event, job, wish)
                is_worth_it = _is_worth_it(judged, wish)
            except Exception as error:  # noqa: BLE001  # as where it is compared
                found = unusable(error, found.pull_request)
        if isinstance(found, NoResult):
            # Say that there is nothing to compare, so that nobody takes it for a pass.
            told, exit_code = found.reason, DocumentError.exit_code if found.is_refused else 0
            text = summary = f"### opprof: no result\n\n{sentence_in_code(told, width=1_000)}\n"
        elif output is not None:
            write_comparison(output, found.comparison)
        if wish.is_dry_run:
            return Done(told=text, exit_code=exit_code)
        _append(job.summary, summary)
        if found.pull_request is not None:
            number, run, attempt = found.pull_request.number, event.number, event.attempt
            marker = _marker(wish, event.repository, number, head=event.head, run=run, attempt=attempt)
            conversation = github_conversation(api, event.repository, number, author=wish.author)
            done = keep_comment(conversation, f"{marker}\n{text}", creates=is_worth_it)
            told = "\n".join(filter(None, (told, done)))
        return Done(told=told, exit_code=exit_code)


def _texts_of(
    judged: Judged, found: Compared, event: Completed, job: GitHubJob, wish: Wish
) -> tuple[str, str]:
    """The comment, without its marker, and the job summary."""
    links = Links(
        summary=job.page,
        traces=f"{event.url}#artifacts" if found.has_traces else None,
        source=_below(job.source(event.head_repository, _clean_commit(judged)), wish),
    )
    comment = markdown_comment(judged, links=links, self_reported=True)
    return comment, job_summary(judged, links=links, self_reported=True)


def _refuse_other_commit(judged: Judged, head: str, built: str | None) -> None:
    """Refuse what measured neither the request's commit nor the job's, such as another job's file."""
    measured = Summary.of(judged).exact.head.commit
    if measured is not None and measured.id not in {head, built}:
        raise DocumentError(
            f"the comparison measured {measured.short}, but this job is for {head[:7]}: it was not used"
        )


def _clean_commit(judged: Judged) -> str | None:
    """The commit that has the measured lines; None if it is unknown, or files were edited."""
    measured = Summary.of(judged).exact.head.commit
    return None if measured is None or measured.dirty else measured.id


def _below(address: str | None, wish: Wish) -> str | None:
    """The address of the start folder, to which the paths of lines are relative."""
    return f"{address}{quote(wish.folder)}/" if address and wish.folder else address


def _marker(wish: Wish, place: str, number: int, *, head: str, run: int, attempt: int) -> str:
    """The first line of a comment, which identifies it."""
    return Marker(key=sticky_key(place, number, wish.configuration), head=head, run=run, attempt=attempt).line


def _append(summary: Path | None, text: str) -> None:
    """Append Markdown to a job summary of GitHub Actions, which all steps share; some jobs have none."""
    if summary is None:
        return
    try:
        with summary.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{text.rstrip()}\n\n")
    except OSError as error:
        raise store_error(summary, "cannot be written", error) from error


def _named(judged: Judged, wish: Wish) -> Judged:
    """Note the configuration's name, unless it is the default."""
    if wish.configuration == DEFAULT_CONFIGURATION:
        return judged
    return replace(judged, notes=(f"configuration {wish.configuration}", *judged.notes))


def _is_worth_it(judged: Judged, wish: Wish) -> bool:
    """Whether to create a comment: always, or only if a test fails or there is no baseline."""
    if wish.when is When.ALWAYS:
        return True
    summary = Summary.of(judged)
    return summary.exact.base is None or any(test.is_failing for test in summary.tests)
