"""GitHub's API on loopback: comments and artifacts, with GitHub's rules.

Further fields of an object come from a template: none, or GitHub's own examples if its API description is
installed.
"""

import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

from support.forges.loopback import Asked, Loopback, Reply

REPOSITORY = "owner/project"
FORK = "somebody/project"
BOT = ("github-actions[bot]", 41898282)
HUMAN = ("reviewer", 7)
MERGED_AT = "a" * 40  # the merge base
HEAD = "b" * 40
NUMBER = 17
TOKEN = "secret"  # noqa: S105 - of a server that asks for none
_CREATED = "2026-01-02T00:00:00Z"


def merged(template: Any, own: Any) -> Any:
    """An object with its template's other fields."""
    if isinstance(template, dict) and isinstance(own, dict):
        return {**template, **{name: merged(template.get(name), value) for name, value in own.items()}}
    return own


class GitHubApi:
    """A repository with one pull request of a fork.

    Attributes:
        comments: The pull request's comments, oldest first: number, author and text.
        pulls: Open pull requests.
        artifacts: The runs' uploads.
        zips: The bytes of each artifact, by number.
        user: The token's owner in `/user`; None for a workflow's token, which must not ask.
        writer: The author of new comments.
        merge_base: The merge base of any two commits; None if GitHub does not know them.
        before: Called before each answer, outside all locks; a returned reply replaces the answer.
    """

    def __init__(self, *, templates: Mapping[str, Any] | None = None) -> None:
        self.comments: list[dict[str, Any]] = []
        self.pulls = [pull()]
        self.artifacts: list[dict[str, Any]] = []
        self.zips: dict[int, bytes] = {}
        self.user: tuple[str, int] | None = None
        self.writer = BOT
        self.merge_base: str | None = MERGED_AT
        self.before: Callable[[Asked], Reply | None] = lambda _: None
        self._templates = templates or {}
        self._lock = threading.Lock()
        self._last = 1000
        self.server = Loopback(self._answer)

    @property
    def head(self) -> str:
        """The commit of the pull request."""
        sha: str = self.pulls[0]["head"]["sha"]
        return sha

    @head.setter
    def head(self, commit: str) -> None:
        self.pulls[0]["head"]["sha"] = commit

    @property
    def bodies(self) -> list[str]:
        """The texts of the comments."""
        return [comment["body"] for comment in self.comments]

    def add(self, author: tuple[str, int], body: str) -> int:
        """Add an existing comment; return its number."""
        with self._lock:
            self._last += 1
            login, number = author
            user = {"login": login, "id": number, "type": "Bot" if "[bot]" in login else "User"}
            self.comments.append({"id": self._last, "user": user, "body": body})
            return self._last

    def upload(self, data: bytes, *, run: int, head: str = HEAD, name: str = "opprof-run") -> None:
        """Add an artifact."""
        number = len(self.artifacts) + 500
        self.artifacts.append(
            {
                "id": number,
                "name": name,
                "size_in_bytes": len(data),
                "expired": False,
                "created_at": _CREATED,
                "workflow_run": {"id": run, "head_sha": head},
            }
        )
        self.zips[number] = data

    def close(self) -> None:
        """Stop answering."""
        self.server.close()

    def _answer(self, asked: Asked) -> Reply:
        early = self.before(asked)
        if early is not None:
            return early
        with self._lock:
            for method, pattern, answer in self._routes():
                found = re.fullmatch(pattern, asked.path)
                if found and asked.method == method:
                    return answer(asked, *map(int, found.groups()))
        return not_found()

    def _routes(self) -> list[tuple[str, str, Callable[..., Reply]]]:
        repository = f"/repos/{REPOSITORY}"
        return [
            ("GET", "/user", self._who),
            ("GET", f"{repository}/pulls", self._list_pulls),
            ("GET", rf"{repository}/pulls/(\d+)", self._get_pull),
            ("GET", rf"{repository}/issues/(\d+)/comments", self._list_comments),
            ("POST", rf"{repository}/issues/(\d+)/comments", self._create),
            ("PATCH", rf"{repository}/issues/comments/(\d+)", self._update),
            ("DELETE", rf"{repository}/issues/comments/(\d+)", self._delete),
            ("GET", rf"{repository}/actions/runs/(\d+)/artifacts", self._list_artifacts),
            ("GET", rf"{repository}/actions/artifacts/(\d+)/zip", self._redirect),
            ("GET", r"/storage/(\d+)", self._store),
            ("GET", rf"{repository}/compare/[0-9a-f]+\.\.\.[0-9a-f]+", self._compare),
        ]

    def _who(self, _: Asked) -> Reply:
        if self.user is None:
            return forbidden()
        login, number = self.user
        return Reply(value=merged(self._templates.get("user"), {"login": login, "id": number}))

    def _list_pulls(self, asked: Asked) -> Reply:
        owner, _, branch = asked.query["head"].partition(":")
        found = [
            each
            for each in self.pulls
            if each["head"]["ref"] == branch and each["head"]["user"]["login"] == owner
        ]
        return self._page([merged(self._templates.get("pull-simple"), each) for each in found], asked)

    def _get_pull(self, _: Asked, number: int) -> Reply:
        found = next((each for each in self.pulls if each["number"] == number), None)
        return Reply(value=merged(self._templates.get("pull"), found)) if found else not_found()

    def _list_comments(self, asked: Asked, _: int) -> Reply:
        return self._page([self._comment(each) for each in self.comments], asked)

    def _create(self, asked: Asked, _: int) -> Reply:
        self._last += 1
        login, number = self.writer
        comment = {
            "id": self._last,
            "user": {"login": login, "id": number, "type": "Bot"},
            "body": asked.json["body"],
        }
        self.comments.append(comment)
        return Reply(status=201, value=self._comment(comment))

    def _update(self, asked: Asked, number: int) -> Reply:
        found = next((each for each in self.comments if each["id"] == number), None)
        if found is None:
            return not_found()
        found["body"] = asked.json["body"]
        return Reply(value=self._comment(found))

    def _delete(self, _: Asked, number: int) -> Reply:
        left = [each for each in self.comments if each["id"] != number]
        if len(left) == len(self.comments):
            return not_found()
        self.comments[:] = left
        return Reply(status=204)

    def _list_artifacts(self, asked: Asked, run: int) -> Reply:
        found = [
            merged(self._templates.get("artifact"), each)
            for each in self.artifacts
            if each["workflow_run"]["id"] == run and each["name"] == asked.query.get("name", each["name"])
        ]
        return Reply(value={"total_count": len(found), "artifacts": found})

    def _redirect(self, _: Asked, number: int) -> Reply:
        return Reply(status=302, headers={"Location": f"{self.server.url}/storage/{number}"})

    def _store(self, _: Asked, number: int) -> Reply:
        return Reply(data=self.zips[number], headers={"Content-Type": "application/zip"})

    def _compare(self, _: Asked) -> Reply:
        if self.merge_base is None:
            return not_found()
        own = {"merge_base_commit": {"sha": self.merge_base}}
        return Reply(value=merged(self._templates.get("comparison"), own))

    def _comment(self, comment: dict[str, Any]) -> Any:
        return merged(self._templates.get("comment"), comment)

    def _page(self, items: list[Any], asked: Asked) -> Reply:
        each, page = int(asked.query.get("per_page", 30)), int(asked.query.get("page", 1))
        assert each <= 100, "GitHub has no longer pages"
        more = len(items) > page * each
        headers = {"Link": f'<{self.server.url}{asked.path}?page={page + 1}>; rel="next"'} if more else {}
        return Reply(value=items[(page - 1) * each : page * each], headers=headers)


def pull(
    *, number: int = NUMBER, head: str = HEAD, branch: str = "topic", fork: str = FORK, base: str = "main"
) -> dict[str, Any]:
    """A pull request."""
    owner = fork.partition("/")[0]
    return {
        "number": number,
        "head": {"sha": head, "ref": branch, "user": {"login": owner}, "repo": {"full_name": fork}},
        "base": {"sha": "c" * 40, "ref": base, "repo": {"full_name": REPOSITORY}},
    }


def pull_request_event(*, head: str = HEAD, number: int = NUMBER) -> dict[str, Any]:
    """The payload of a pull request's event."""
    return {
        "action": "synchronize",
        "repository": {"full_name": REPOSITORY},
        "pull_request": {"number": number, "head": {"sha": head}},
    }


def workflow_run_event(**others: Any) -> dict[str, Any]:
    """The payload of a finished run's event."""
    run: dict[str, Any] = {
        "id": 90,
        "run_number": 4,
        "run_attempt": 1,
        "event": "pull_request",
        "head_sha": HEAD,
        "head_branch": "topic",
        "head_repository": {"full_name": FORK},
        "html_url": f"https://github.com/{REPOSITORY}/actions/runs/90",
        "pull_requests": [],
    }
    return {
        "action": "completed",
        "repository": {"full_name": REPOSITORY},
        "workflow_run": {**run, **others},
    }


def not_found() -> Reply:
    url = "https://docs.github.com/rest"
    return Reply(status=404, value={"message": "Not Found", "documentation_url": url, "status": "404"})


def forbidden() -> Reply:
    """The response to a token without permission."""
    message = "Resource not accessible by integration"
    url = "https://docs.github.com/rest"
    return Reply(status=403, value={"message": message, "documentation_url": url, "status": "403"})


def limited(**headers: str) -> Reply:
    """The response to a client over the rate limit."""
    value = {"message": "API rate limit exceeded"}
    return Reply(
        status=403, value=value, headers={name.replace("_", "-"): text for name, text in headers.items()}
    )
