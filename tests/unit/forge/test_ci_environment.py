"""Values from a job's environment."""

from pathlib import Path

import pytest

from pytest_opprof.errors import ForgeError, UsageError
from pytest_opprof.forge.ci_environment import GitHubJob, GitLabJob

GITHUB = {
    "GITHUB_EVENT_PATH": "/event.json",
    "GITHUB_RUN_NUMBER": "4",
    "GITHUB_RUN_ATTEMPT": "2",
}
GITLAB = {
    "CI_API_V4_URL": "https://gitlab.example.org/api/v4",
    "CI_PROJECT_ID": "12",
    "CI_COMMIT_SHA": "a" * 40,
    "CI_PIPELINE_ID": "90",
    "CI_JOB_ID": "900",
}


def test_bare_github_job_has_the_required_fields() -> None:
    assert GitHubJob.of(GITHUB) == GitHubJob(
        api_url="https://api.github.com",
        token="",
        event=Path("/event.json"),
        run=4,
        attempt=2,
        page=None,
        server="",
        summary=None,
        merge=None,
    )


def test_github_job_reads_every_variable() -> None:
    more = {
        "GITHUB_API_URL": "https://ghe.example.org/api/v3",
        "GITHUB_TOKEN": "one",
        "GH_TOKEN": "two",
        "GITHUB_SERVER_URL": "https://ghe.example.org",
        "GITHUB_REPOSITORY": "owner/project",
        "GITHUB_RUN_ID": "90",
        "GITHUB_STEP_SUMMARY": "/summary.md",
        "GITHUB_SHA": "c" * 40,
        "GITHUB_REF": "refs/pull/17/merge",
    }
    job = GitHubJob.of({**GITHUB, **more})
    assert job.api_url == "https://ghe.example.org/api/v3"
    assert job.checked_token() == "one"
    assert job.page == "https://ghe.example.org/owner/project/actions/runs/90"
    assert job.summary == Path("/summary.md")
    assert job.merge == "c" * 40
    assert GitHubJob.of({**GITHUB, **more, "GITHUB_REF": "refs/heads/main"}).merge is None
    assert job.source("fork/project", None) is None
    assert job.source("fork/project", "5d6e7f8") == "https://ghe.example.org/fork/project/blob/5d6e7f8/"
    assert GitHubJob.of({**GITHUB, "GH_TOKEN": "two"}).checked_token() == "two"


def test_gitlab_job_reads_every_variable() -> None:
    bare = GitLabJob.of(GITLAB)
    assert (bare.project, bare.merge_request, bare.head) == (12, None, "a" * 40)
    assert (bare.run, bare.attempt, bare.page) == (90, 900, None)
    more = {
        "CI_MERGE_REQUEST_IID": "17",
        "CI_MERGE_REQUEST_PROJECT_ID": "5",
        "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": "b" * 40,
        "CI_JOB_URL": "https://gitlab.example.org/job",
        "CI_JOB_TOKEN": "of-the-job",
    }
    job = GitLabJob.of({**GITLAB, **more})
    assert (job.project, job.merge_request, job.head) == (5, 17, "b" * 40)
    assert job.page == "https://gitlab.example.org/job"
    assert job.commit == "a" * 40
    assert bare.source("a" * 40) is None
    assert job.is_job_token
    assert job.checked_token() == {"JOB-TOKEN": "of-the-job"}
    own = GitLabJob.of({**GITLAB, **more, "GITLAB_TOKEN": "mine"})
    assert own.checked_token() == {"PRIVATE-TOKEN": "mine"}
    assert not own.is_job_token


def test_gitlab_commit_is_linked_where_it_is() -> None:
    fork, target = "https://gitlab.example.org/fork", "https://gitlab.example.org/target"
    urls = {"CI_MERGE_REQUEST_SOURCE_PROJECT_URL": fork, "CI_PROJECT_URL": target}
    job = GitLabJob.of({**GITLAB, **urls, "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": "b" * 40})
    assert job.source("b" * 40) == f"{fork}/-/blob/{'b' * 40}/"
    assert job.source("a" * 40) == f"{target}/-/blob/{'a' * 40}/", "the merge of both"
    assert job.source(None) is None


@pytest.mark.parametrize("name", GITHUB)
def test_missing_github_variable_is_named(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is not set: this is not a job of GitHub Actions"):
        GitHubJob.of({**GITHUB, name: ""})


@pytest.mark.parametrize("name", GITLAB)
def test_missing_gitlab_variable_is_named(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is not set: this is not a job of GitLab CI"):
        GitLabJob.of({**GITLAB, name: ""})


def test_invalid_commit_is_reported() -> None:
    with pytest.raises(ForgeError, match="GitLab CI: 'main' is not a commit"):
        GitLabJob.of({**GITLAB, "CI_COMMIT_SHA": "main"})


def test_invalid_number_is_reported() -> None:
    with pytest.raises(UsageError, match="but GitHub Actions sets it to a number"):
        GitHubJob.of({**GITHUB, "GITHUB_RUN_NUMBER": "9" * 19})
    with pytest.raises(
        UsageError, match="GITHUB_RUN_NUMBER is '4; rm', but GitHub Actions sets it to a number"
    ):
        GitHubJob.of({**GITHUB, "GITHUB_RUN_NUMBER": "4; rm"})


def test_line_end_of_a_token_is_left_out() -> None:
    assert GitHubJob.of({**GITHUB, "GITHUB_TOKEN": "\n", "GH_TOKEN": "one\n"}).checked_token() == "one"
    job = GitLabJob.of({**GITLAB, "GITLAB_TOKEN": "mine\n"})
    assert job.checked_token() == {"PRIVATE-TOKEN": "mine"}


@pytest.mark.parametrize("token", ["tök", "one two", "one\ntwo", "a\x00b"])
def test_what_cannot_be_a_token_is_refused_and_not_shown(token: str) -> None:
    for name, of, variables in (
        ("GITHUB_TOKEN", GitHubJob.of, GITHUB),
        ("GITLAB_TOKEN", GitLabJob.of, GITLAB),
    ):
        with pytest.raises(UsageError, match=f"^{name} is not a token") as caught:
            of({**variables, name: token})
        assert token not in str(caught.value)


def test_missing_token_is_reported() -> None:
    with pytest.raises(UsageError, match="set GITHUB_TOKEN in the step's env"):
        GitHubJob.of(GITHUB).checked_token()
    with pytest.raises(UsageError, match="set the CI/CD variable GITLAB_TOKEN"):
        GitLabJob.of(GITLAB).checked_token()
