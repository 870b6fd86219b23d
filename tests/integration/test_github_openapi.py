"""Every request and every successful answer matches GitHub's API description: all cases, through Prism."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.documents.strategies import simple_run, simple_test
from support.forges.artifacts import artifact_of
from support.forges.github_api import (
    BOT,
    HEAD,
    HUMAN,
    MERGED_AT,
    NUMBER,
    REPOSITORY,
    TOKEN,
    GitHubApi,
    forbidden,
    workflow_run_event,
)
from support.forges.sticky_comments import Stage, StickyComments, body_of

from pytest_opprof.baselines.archive import open_store
from pytest_opprof.cli.main import main
from pytest_opprof.errors import ForgeError
from pytest_opprof.forge.conversation import Conversation
from pytest_opprof.forge.github import github_conversation, open_github
from pytest_opprof.forge.retry import RetryPolicy
from pytest_opprof.results.document import run_to_document
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Commit

pytest.importorskip("httpx", reason="httpx is not installed: see the dev extra")
from support.forges import github_openapi
from support.forges.github_openapi import Prism

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not github_openapi.is_installed(),
        reason="GitHub's description of its API and Prism are not installed: make github-api (needs npm)",
    ),
]


@pytest.fixture(scope="module")
def prism(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prism]:
    found = Prism(tmp_path_factory.mktemp("prism"))
    yield found
    found.close()


@pytest.fixture
def api(prism: Prism) -> Iterator[GitHubApi]:
    prism.api = GitHubApi(templates=prism.templates)
    yield prism.api
    prism.api.close()
    prism.api = None


class TestThroughPrism(StickyComments):
    """All cases, with GitHub's description between client and server."""

    @pytest.fixture
    def stage(self, api: GitHubApi, prism: Prism) -> Stage:
        @contextmanager
        def talk(retry: RetryPolicy) -> Iterator[Conversation]:
            with open_github(prism.url, token=TOKEN, retry=retry) as client:
                yield github_conversation(client, REPOSITORY, NUMBER)

        return Stage(api=api, bot=BOT, human=HUMAN, update="PATCH", talk=talk, refusal=forbidden())


def test_request_for_own_name_matches_the_description(api: GitHubApi, prism: Prism) -> None:
    api.user = ("somebody", 7)
    with open_github(prism.url, token=TOKEN) as client:
        author = github_conversation(client, REPOSITORY, NUMBER).author()
    assert (author.name, author.number) == ("somebody", 7)


def test_requests_of_a_comment_match_the_description(
    api: GitHubApi, prism: Prism, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = (
        simple_run(simple_test({"aten::mul": count}, processes=2), commit=Commit(id=commit, dirty=False))
        for count, commit in ((4, MERGED_AT), (9, HEAD))
    )
    open_store("dir:.opprof", root=tmp_path).save("main", before, collected=Collected())
    api.upload(artifact_of(run_to_document(after)), run=90)
    event = tmp_path / "event.json"
    event.write_text(json.dumps(workflow_run_event()), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "GITHUB_API_URL": prism.url,
        "GITHUB_TOKEN": "secret",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_RUN_NUMBER": "1",
        "GITHUB_RUN_ATTEMPT": "1",
        "NO_PROXY": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    assert main(["comment", "--from-event"]) == 0
    (body,) = api.bodies
    assert "opprof: REGRESSED" in body
    asked = {request.path.split("/")[-1] for request in api.server.asked}
    assert {"pulls", "artifacts", "zip", "comments", "user"} <= asked


def test_prism_rejects_undescribed_requests(api: GitHubApi, prism: Prism) -> None:
    """The cases above can fail: in each direction, something that GitHub does not describe."""
    with open_github(prism.url, token=TOKEN, retry=RetryPolicy(tries=1)) as client:
        path = f"/repos/{REPOSITORY}/issues/{NUMBER}/comments"
        with pytest.raises(ForgeError, match="422"):
            client.ask("POST", path, needs="", content={"text": "no body"})
        with pytest.raises(ForgeError, match="404"):
            client.ask("GET", f"/repos/{REPOSITORY}/comment", needs="")
        api.add(BOT, body_of("one"))
        api.comments[0]["id"] = "a text"
        with pytest.raises(ForgeError, match="500"):
            client.ask("GET", path, needs="")
