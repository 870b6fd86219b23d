"""One comment on a pull request, at GitHub and at GitLab, on servers that enforce their rules."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support.forges.github_api import BOT, HUMAN, NUMBER, REPOSITORY, TOKEN, GitHubApi, forbidden, limited
from support.forges.gitlab_api import BOT as GITLAB_BOT
from support.forges.gitlab_api import PROJECT, GitLabApi
from support.forges.loopback import Asked, Reply
from support.forges.sticky_comments import CutConnections, Stage, StickyComments, body_of

from pytest_opprof.errors import ForgeError
from pytest_opprof.forge.client import Api
from pytest_opprof.forge.conversation import Conversation
from pytest_opprof.forge.github import github_conversation, open_github
from pytest_opprof.forge.gitlab import JOB_TOKEN, PRIVATE_TOKEN, gitlab_conversation
from pytest_opprof.forge.retry import RetryPolicy
from pytest_opprof.forge.sticky import keep_comment

pytest.importorskip("httpx", reason="httpx is not installed: see the dev extra")


@pytest.fixture
def github() -> Iterator[Stage]:
    """A pull request of GitHub, and the token of a workflow."""
    api = GitHubApi()

    @contextmanager
    def talk(retry: RetryPolicy) -> Iterator[Conversation]:
        with open_github(api.server.url, token=TOKEN, retry=retry) as client:
            yield github_conversation(client, REPOSITORY, NUMBER)

    yield Stage(api=api, bot=BOT, human=HUMAN, update="PATCH", talk=talk, refusal=forbidden())
    api.close()


@pytest.fixture
def gitlab() -> Iterator[Stage]:
    """A merge request of GitLab, and a project access token."""
    api = GitLabApi()

    @contextmanager
    def talk(retry: RetryPolicy) -> Iterator[Conversation]:
        with Api(
            f"{api.server.url}/api/v4", name="GitLab", headers={PRIVATE_TOKEN: "secret"}, retry=retry
        ) as client:
            yield gitlab_conversation(client, PROJECT, NUMBER, is_job=False)

    refusal = Reply(status=403, value={"message": "403 Forbidden"})
    yield Stage(api=api, bot=GITLAB_BOT, human=HUMAN, update="PUT", talk=talk, refusal=refusal)
    api.close()


@pytest.fixture
def stage(request: pytest.FixtureRequest) -> Stage:
    """The forge of a class of cases."""
    found: Stage = request.getfixturevalue(request.cls.FORGE)
    return found


class TestGitHub(StickyComments, CutConnections):
    """All cases with GitHub's rules."""

    FORGE = "github"


class TestGitLab(StickyComments, CutConnections):
    """All cases with GitLab's rules."""

    FORGE = "gitlab"


def test_requests_name_the_client_and_api_version(github: Stage) -> None:
    github.keep(body_of("one"))
    for asked in github.api.server.asked:
        assert asked.headers["authorization"] == "Bearer secret"
        assert asked.headers["x-github-api-version"] == "2022-11-28"
        assert asked.headers["accept"] == "application/vnd.github+json"
        assert asked.headers["user-agent"].startswith("pytest-opprof/")


def test_own_comments_of_a_persons_token_are_found_by_number(github: Stage) -> None:
    assert isinstance(github.api, GitHubApi)
    github.api.user = github.api.writer = ("renamed", HUMAN[1])
    github.api.add(HUMAN, body_of("under my old name"))
    assert github.keep(body_of("new", run=2)) == "updated the comment"


def test_unnamed_app_ends_with_one_comment(github: Stage) -> None:
    """An app's token may not ask who it is: its comment shows that once it is written."""
    assert isinstance(github.api, GitHubApi)
    github.api.writer = ("my-app[bot]", 5)
    github.keep(body_of("one"))
    assert github.keep(body_of("two", run=2)) == "wrote a comment, and removed duplicates: 1"
    assert github.api.bodies == [body_of("two", run=2)]


def test_app_whose_name_is_given_updates_its_comment(github: Stage) -> None:
    assert isinstance(github.api, GitHubApi)
    github.api.writer = ("my-app[bot]", 5)
    github.keep(body_of("one"))
    github.api.add(BOT, body_of("of another app", run=1))
    with open_github(github.api.server.url, token=TOKEN) as client:
        conversation = github_conversation(client, REPOSITORY, NUMBER, author="my-app[bot]")
        assert keep_comment(conversation, body_of("two", run=2), creates=True) == "updated the comment"
    assert github.api.bodies == [body_of("two", run=2), body_of("of another app", run=1)]


@pytest.mark.parametrize(
    ("reply", "pause"),
    [
        (limited(x_ratelimit_remaining="0", x_ratelimit_reset="1000060"), 61.5),
        (limited(x_ratelimit_remaining="0", x_ratelimit_reset="900000"), 1.5),
        (limited(x_ratelimit_remaining="0"), 0.75),
        (limited(retry_after="7"), 8.5),
        (limited(retry_after="soon", x_ratelimit_remaining="0"), 0.75),
        (limited(retry_after="-5", x_ratelimit_remaining="0"), 0.75),
        (Reply(status=403, value={"message": "You have exceeded a secondary rate limit"}), 0.75),
    ],
    ids=["until reset", "reset is over", "no reset", "retry after", "no number", "negative", "secondary"],
)
def test_rate_limit_is_waited_for(github: Stage, reply: Reply, pause: float) -> None:
    github.api.server.fail("POST", reply)
    assert github.keep(body_of("one")) == "wrote a comment"
    assert github.waited == [pause]


def test_long_rate_limit_says_when_it_ends(github: Stage) -> None:
    github.api.server.fail("GET", limited(x_ratelimit_remaining="0", x_ratelimit_reset="1003600"))
    with pytest.raises(ForgeError, match=r"403: API rate limit exceeded\. Try again after 1970-01-12 14:46"):
        github.keep(body_of("one"))
    assert github.waited == []


def test_endless_pause_is_given_up(github: Stage) -> None:
    github.api.server.fail("GET", limited(retry_after="1e300"))
    with pytest.raises(ForgeError, match="after the end of time"):
        github.keep(body_of("one"))


def test_comment_of_a_deleted_account_is_passed_over(github: Stage) -> None:
    github.api.add(HUMAN, body_of("mine once"))
    github.api.comments[0]["user"] = None
    assert github.keep(body_of("one")) == "wrote a comment"


def test_comment_without_text_is_passed_over(github: Stage) -> None:
    github.api.add(BOT, "")
    del github.api.comments[0]["body"]
    assert github.keep(body_of("one")) == "wrote a comment"


def test_non_json_answer_is_reported(github: Stage) -> None:
    github.api.server.fail("GET", Reply(data=b"<html>"))
    with pytest.raises(ForgeError, match=r"GET /repos/owner/project/pulls/17: the answer cannot be read"):
        github.keep(body_of("one"))


def test_incomplete_answer_is_reported(github: Stage) -> None:
    github.api.server.fail("GET", Reply(value={"head": {}}))
    with pytest.raises(ForgeError, match=r"pulls/17: there is no text at head\.sha"):
        github.keep(body_of("one"))


def test_endless_pages_are_given_up(github: Stage) -> None:
    def endless(asked: Asked) -> Reply | None:
        if not asked.path.endswith("/comments") or asked.method != "GET":
            return None
        return Reply(value=[], headers={"Link": '<https://example.org>; rel="next"'})

    github.api.before = endless
    with pytest.raises(ForgeError, match="more than 10000 entries"):
        github.keep(body_of("one"))


def test_notes_of_gitlab_itself_are_passed_over(gitlab: Stage) -> None:
    assert isinstance(gitlab.api, GitLabApi)
    gitlab.api.add(GITLAB_BOT, body_of("added 1 commit"), system=True)
    assert gitlab.keep(body_of("one")) == "wrote a comment"


def test_gitlab_job_token_belongs_to_its_starter(gitlab: Stage) -> None:
    assert isinstance(gitlab.api, GitLabApi)
    gitlab.api.user = HUMAN
    gitlab.api.add(HUMAN, body_of("before"))
    with Api(f"{gitlab.api.server.url}/api/v4", name="GitLab", headers={JOB_TOKEN: "of-the-job"}) as client:
        conversation = gitlab_conversation(client, PROJECT, NUMBER, is_job=True)
        assert conversation.author().number == HUMAN[1]
        assert gitlab_conversation(client, PROJECT, NUMBER, is_job=True, author="me").author().name == "me"


def test_wrong_gitlab_token_is_reported(gitlab: Stage) -> None:
    with (
        Api(f"{gitlab.api.server.url}/api/v4", name="GitLab", headers={PRIVATE_TOKEN: "wrong"}) as client,
        pytest.raises(ForgeError, match=r"401 Unauthorized\): GITLAB_TOKEN needs the scope `api`"),
    ):
        gitlab_conversation(client, PROJECT, NUMBER, is_job=False).head()
