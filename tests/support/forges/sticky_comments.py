"""Rules of the sticky comment on every forge: test cases with a server, with or without a proxy."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import pytest
from support.forges.github_api import GitHubApi
from support.forges.gitlab_api import GitLabApi
from support.forges.loopback import NO_ANSWER, Asked, Reply

from pytest_opprof.errors import ForgeError, ForgePermissionError
from pytest_opprof.forge.conversation import Conversation
from pytest_opprof.forge.retry import RetryPolicy
from pytest_opprof.forge.sticky import Marker, keep_comment, sticky_key

KEY = sticky_key("owner/project", 17, "default")
HEAD = "b" * 40
OLD_HEAD = "d" * 40
CREATE = "POST"


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A pull request at a forge, and ways to talk to it.

    Attributes:
        api: The server.
        bot: The author of our comments.
        human: Another author.
        update: The HTTP method that updates a comment.
        talk: Makes a client.
        refusal: The error of a client without write permission.
        waited: The clients' pauses, in seconds.
    """

    api: GitHubApi | GitLabApi
    bot: tuple[str, int]
    human: tuple[str, int]
    update: str
    talk: Callable[[RetryPolicy], AbstractContextManager[Conversation]]
    refusal: Reply
    waited: list[float] = field(default_factory=list)

    def keep(self, body: str, *, creates: bool = True) -> str:
        """Write or update the comment as a job does, without real waiting."""
        retry = RetryPolicy(sleep=self.waited.append, now=lambda: 1_000_000.0, draw=lambda: 0.5)
        with self.talk(retry) as conversation:
            return keep_comment(conversation, body, creates=creates)


def body_of(text: str, *, run: int = 1, attempt: int = 1, head: str = HEAD, key: str = KEY) -> str:
    """A comment of ours."""
    return f"{Marker(key=key, head=head, run=run, attempt=attempt).line}\n{text}"


class StickyComments:
    """The cases; a subclass provides the fixture `stage`."""

    def test_comment_is_created_once_and_then_updated(self, stage: Stage) -> None:
        stage.api.add(stage.human, "nice")
        assert stage.keep(body_of("one")) == "wrote a comment"
        assert stage.keep(body_of("two", run=2)) == "updated the comment"
        assert stage.api.bodies == ["nice", body_of("two", run=2)]

    def test_comment_is_found_behind_hundreds_of_others(self, stage: Stage) -> None:
        for number in range(120):
            stage.api.add(stage.human, f"comment {number}")
        stage.api.add(stage.bot, body_of("old"))
        for number in range(130):
            stage.api.add(stage.human, f"later {number}")
        assert stage.keep(body_of("new", run=2)) == "updated the comment"
        assert stage.api.bodies[120] == body_of("new", run=2)
        assert len(stage.api.bodies) == 251

    def test_duplicates_are_removed(self, stage: Stage) -> None:
        for run in (1, 3, 2):
            stage.api.add(stage.bot, body_of("old", run=run))
        assert stage.keep(body_of("new", run=4)) == "updated the comment, and removed duplicates: 2"
        assert stage.api.bodies == [body_of("new", run=4)]

    def test_marker_quoted_by_a_human_is_left_alone(self, stage: Stage) -> None:
        quotes = [body_of("my own words", run=9), f"> {body_of('quoted', run=9)}"]
        for quote in quotes:
            stage.api.add(stage.human, quote)
        stage.api.add(stage.bot, f"It said:\n{body_of('quoted by the bot itself', run=9)}")
        assert stage.keep(body_of("new")) == "wrote a comment"
        assert stage.api.bodies[:2] == quotes
        assert len(stage.api.bodies) == 4

    def test_other_configurations_keep_theirs(self, stage: Stage) -> None:
        other = body_of("cuda", run=9, key=sticky_key("owner/project", 17, "cuda"))
        stage.api.add(stage.bot, other)
        stage.keep(body_of("cpu"))
        assert stage.api.bodies == [other, body_of("cpu")]

    @pytest.mark.parametrize("newer", [(3, 1), (2, 2)], ids=["later run", "later attempt"])
    def test_older_result_leaves_a_newer_one(self, stage: Stage, newer: tuple[int, int]) -> None:
        run, attempt = newer
        stage.api.add(stage.bot, body_of("newer", run=run, attempt=attempt))
        told = stage.keep(body_of("older", run=2, attempt=1))
        assert told == "nothing was written: the comment has a newer result"
        assert stage.api.bodies == [body_of("newer", run=run, attempt=attempt)]

    def test_the_newest_of_several_counts(self, stage: Stage) -> None:
        for run in (1, 9):
            stage.api.add(stage.bot, body_of("there", run=run))
        told = stage.keep(body_of("between", run=5))
        assert told == "nothing was written: the comment has a newer result"
        assert stage.api.bodies == [body_of("there", run=1), body_of("there", run=9)]

    def test_result_of_an_older_commit_is_not_written(self, stage: Stage) -> None:
        told = stage.keep(body_of("older", run=9, head=OLD_HEAD))
        assert told == "nothing was written: ddddddd was measured, and the pull request is now at bbbbbbb"
        assert stage.api.bodies == []

    def test_result_of_the_current_commit_replaces_any_other(self, stage: Stage) -> None:
        stage.api.add(stage.bot, body_of("of another commit", run=9, head=OLD_HEAD))
        assert stage.keep(body_of("now", run=1)) == "updated the comment"
        assert stage.api.bodies == [body_of("now", run=1)]

    def test_good_news_does_not_create_a_comment(self, stage: Stage) -> None:
        told = stage.keep(body_of("all well"), creates=False)
        assert told == "nothing was written: there is no comment yet, and no failure to report"
        stage.keep(body_of("bad news", run=2))
        assert stage.keep(body_of("well again", run=3), creates=False) == "updated the comment"
        assert stage.api.bodies == [body_of("well again", run=3)]

    def test_comment_deleted_meanwhile_is_recreated(self, stage: Stage) -> None:
        gone = stage.api.add(stage.bot, body_of("old"))

        def delete(asked: Asked) -> None:
            if asked.method == stage.update:
                stage.api.comments[:] = [each for each in stage.api.comments if each["id"] != gone]

        stage.api.before = delete
        assert stage.keep(body_of("new", run=2)) == "wrote a comment"
        assert stage.api.bodies == [body_of("new", run=2)]

    def test_comment_deleted_right_after_it_was_written_comes_back(self, stage: Stage) -> None:
        written = threading.Event()

        def delete(asked: Asked) -> None:
            if asked.method == CREATE and not stage.api.comments:
                written.set()
            elif written.is_set():
                written.clear()
                stage.api.comments.clear()

        stage.api.before = delete
        stage.keep(body_of("one"))
        assert stage.api.bodies == [body_of("one")]

    def test_two_jobs_at_once_end_with_one_comment(self, stage: Stage) -> None:
        # both list the comments before either writes one
        both = threading.Barrier(2, timeout=60)

        def meet(asked: Asked) -> None:
            if asked.method == CREATE:
                both.wait()

        stage.api.before = meet
        jobs = [threading.Thread(target=stage.keep, args=(body_of("same", run=run),)) for run in (1, 2)]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()
        assert stage.api.bodies == [body_of("same", run=2)]

    def test_newer_result_that_was_written_over_comes_back(self, stage: Stage) -> None:
        number = stage.api.add(stage.bot, body_of("oldest"))
        written = threading.Event()

        def write_over(asked: Asked) -> None:
            if asked.method == stage.update:
                written.set()
            elif written.is_set():  # after ours was written, another job has just added its own
                written.clear()
                next(each for each in stage.api.comments if each["id"] == number)["body"] = body_of(
                    "late", run=2
                )

        stage.api.before = write_over
        stage.keep(body_of("newest", run=3))
        assert stage.api.bodies == [body_of("newest", run=3)]

    def test_refusal_names_the_permission(self, stage: Stage) -> None:
        stage.api.server.fail(CREATE, stage.refusal)
        with pytest.raises(ForgePermissionError, match=r"pull-requests: write|GITLAB_TOKEN"):
            stage.keep(body_of("one"))
        assert stage.api.bodies == []
        assert stage.waited == [], "a refusal is final"

    def test_rejected_comment_is_reported(self, stage: Stage) -> None:
        value = {"message": "Validation Failed", "documentation_url": "https://docs.github.com/rest"}
        stage.api.server.fail(CREATE, Reply(status=422, value=value))
        with pytest.raises(ForgeError, match=r"(comments|notes): 422: Validation Failed$"):
            stage.keep(body_of("one"))

    @pytest.mark.parametrize("status", [500, 502, 503, 429])
    def test_busy_server_is_asked_again(self, stage: Stage, status: int) -> None:
        busy = Reply(status=status, value={"message": "not now"})
        stage.api.server.fail("GET", busy, busy)
        stage.api.server.fail(CREATE, busy)
        assert stage.keep(body_of("one")) == "wrote a comment"
        assert stage.api.bodies == [body_of("one")]
        assert stage.waited == [0.75, 1.5, 0.75], "twice as long each time, from a second on, less the luck"

    def test_server_that_stays_busy_is_given_up(self, stage: Stage) -> None:
        stage.api.server.fail("GET", *[Reply(status=503, value={"message": "down"})] * 6)
        with pytest.raises(ForgeError, match=r"503: down, 6 times\. Try again once Git.{3} is available"):
            stage.keep(body_of("one"))
        assert len(stage.waited) == 5

    def test_pause_that_the_server_asks_for_is_kept(self, stage: Stage) -> None:
        stage.api.server.fail(CREATE, Reply(status=429, value={}, headers={"Retry-After": "30"}))
        stage.keep(body_of("one"))
        assert stage.waited == [31.5]


class CutConnections:
    """Cases of connections that end early, except where a proxy hides that."""

    def test_lost_answer_is_asked_for_again(self, stage: Stage) -> None:
        stage.api.server.fail("GET", NO_ANSWER)
        assert stage.keep(body_of("one")) == "wrote a comment"
        assert stage.waited == [0.75]

    def test_comment_whose_answer_got_lost_stays_one(self, stage: Stage) -> None:
        """The request succeeded but its answer was lost: a retry would create a second comment."""
        heard = threading.Event()

        def hear(asked: Asked) -> Reply | None:
            if asked.method != CREATE or heard.is_set():
                return None
            heard.set()
            stage.api.add(stage.bot, asked.json["body"])
            return NO_ANSWER

        stage.api.before = hear
        stage.keep(body_of("one"))
        assert stage.api.bodies == [body_of("one")]
