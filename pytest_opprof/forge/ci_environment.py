"""The CI job that this process runs in, from the variables of GitHub Actions and GitLab CI."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_opprof.errors import UsageError
from pytest_opprof.forge.github import API_URL, check_commit
from pytest_opprof.forge.gitlab import JOB_TOKEN, PRIVATE_TOKEN

_NUMBER = re.compile(r"[0-9]{1,18}")
_TOKEN = re.compile(r"[!-~]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHubJob:
    """A job of GitHub Actions."""

    api_url: str
    token: str  # the API token; empty without one
    event: Path  # the event's JSON file
    run: int  # the number of the workflow's run
    attempt: int
    page: str | None  # the address of the run's page; None if unknown
    server: str  # the address of GitHub itself; empty if unknown
    summary: Path | None  # the file of the job summary; None without one
    # The pull request's merge, if the workflow runs for it; pull_request_target runs for the base.
    merge: str | None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> GitHubJob:
        """Read a job from environment variables; UsageError outside of GitHub Actions."""
        server, repository, run, summary = (
            environment.get(f"GITHUB_{name}")
            for name in ("SERVER_URL", "REPOSITORY", "RUN_ID", "STEP_SUMMARY")
        )
        is_merge = environment.get("GITHUB_REF", "").startswith("refs/pull/")
        return cls(
            api_url=environment.get("GITHUB_API_URL") or API_URL,
            token=_token(environment, "GITHUB_TOKEN") or _token(environment, "GH_TOKEN"),
            event=Path(_needed(environment, "GITHUB_EVENT_PATH", whose="GitHub Actions")),
            run=_number(environment, "GITHUB_RUN_NUMBER", whose="GitHub Actions"),
            attempt=_number(environment, "GITHUB_RUN_ATTEMPT", whose="GitHub Actions"),
            page=f"{server}/{repository}/actions/runs/{run}" if server and repository and run else None,
            server=server or "",
            summary=Path(summary) if summary else None,
            merge=environment.get("GITHUB_SHA") if is_merge else None,
        )

    def source(self, repository: str, commit: str | None) -> str | None:
        """The address under which a commit's files can be read; None if unknown."""
        return f"{self.server}/{repository}/blob/{commit}/" if self.server and repository and commit else None

    def checked_token(self) -> str:
        """The token; UsageError if there is none."""
        if not self.token:
            raise UsageError("there is no token: set GITHUB_TOKEN in the step's env to ${{ github.token }}")
        return self.token


@dataclass(frozen=True, slots=True, kw_only=True)
class GitLabJob:
    """A job of GitLab CI."""

    api_url: str
    token: Mapping[str, str]  # the request header with the API token; empty without one
    project: int  # the number of the merge request's target project
    merge_request: int | None  # its number in that project; None in another kind of pipeline
    head: str
    run: int  # the number of the pipeline
    attempt: int  # the number of the job; a retry has a higher one
    page: str | None  # the address of the job's page; None if unknown
    # The commit that the pipeline runs for, such as a merge request's merge; None if unknown.
    commit: str | None
    # The addresses of the source project, which has `head`, and of the pipeline's own.
    urls: tuple[str | None, str | None]

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> GitLabJob:
        """Read a job from environment variables; UsageError outside of GitLab CI."""
        whose = "GitLab CI"
        # A fork's merge request runs in the fork's project, but belongs to its target project.
        project = "CI_MERGE_REQUEST_PROJECT_ID"
        is_request = bool(environment.get("CI_MERGE_REQUEST_IID"))
        # In a merged-results pipeline CI_COMMIT_SHA is the merge commit, not the merge request's.
        built = environment.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA")
        head = check_commit(built or _needed(environment, "CI_COMMIT_SHA", whose=whose), where=whose)
        url = environment.get("CI_PROJECT_URL")
        known = {
            PRIVATE_TOKEN: _token(environment, "GITLAB_TOKEN"),
            JOB_TOKEN: _token(environment, "CI_JOB_TOKEN"),
        }
        tokens = ({header: token} for header, token in known.items() if token)
        return cls(
            api_url=_needed(environment, "CI_API_V4_URL", whose=whose),
            token=next(tokens, {}),
            project=_number(
                environment, project if environment.get(project) else "CI_PROJECT_ID", whose=whose
            ),
            merge_request=_number(environment, "CI_MERGE_REQUEST_IID", whose=whose) if is_request else None,
            head=head,
            run=_number(environment, "CI_PIPELINE_ID", whose=whose),
            attempt=_number(environment, "CI_JOB_ID", whose=whose),
            page=environment.get("CI_JOB_URL"),
            commit=environment.get("CI_COMMIT_SHA"),
            urls=(environment.get("CI_MERGE_REQUEST_SOURCE_PROJECT_URL") or url, url),
        )

    def source(self, commit: str | None) -> str | None:
        """The address under which the measured commit's files can be read; None if unknown."""
        url = self.urls[commit == self.commit]
        return f"{url}/-/blob/{commit}/" if url and commit else None

    @property
    def is_job_token(self) -> bool:
        """Whether the token is the job's own."""
        return JOB_TOKEN in self.token

    def checked_token(self) -> Mapping[str, str]:
        """The header with the token; UsageError if there is none."""
        if not self.token:
            raise UsageError(
                "there is no token: set the CI/CD variable GITLAB_TOKEN to a project access token (scope api)"
            )
        return self.token


def _token(environment: Mapping[str, str], name: str) -> str:
    """A token, without the line end that a pasted one often has; empty without one."""
    token = environment.get(name, "").strip()
    if not _TOKEN.fullmatch(token):
        raise UsageError(f"{name} is not a token: it has a blank, or a character that is not ASCII")
    return token


def _needed(environment: Mapping[str, str], name: str, *, whose: str) -> str:
    value = environment.get(name)
    if not value:
        raise UsageError(f"{name} is not set: this is not a job of {whose}. To see the comment: --dry-run")
    return value


def _number(environment: Mapping[str, str], name: str, *, whose: str) -> int:
    text = _needed(environment, name, whose=whose)
    if not _NUMBER.fullmatch(text):
        raise UsageError(f"{name} is {text[:80]!a}, but {whose} sets it to a number")
    return int(text)
