"""GitLab's API on loopback: the notes of one merge request, with GitLab's rules."""

import re
import threading
from collections.abc import Callable
from typing import Any

from support.forges.loopback import Asked, Loopback, Reply

PROJECT = 12
NUMBER = 17
BOT = ("project_12_bot", 99)
HUMAN = ("reviewer", 7)
HEAD = "b" * 40
_TOKENS = {"private-token": "secret", "job-token": "of-the-job"}


class GitLabApi:
    """A project with one merge request.

    Attributes:
        comments: The notes, oldest first: number, author and text.
        head: The commit of the merge request.
        user: The token's owner.
        before: Called before each answer, outside all locks; a returned reply replaces the answer.
    """

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.head = HEAD
        self.user: tuple[str, int] = BOT
        self.before: Callable[[Asked], Reply | None] = lambda _: None
        self._lock = threading.Lock()
        self._last = 1000
        self.server = Loopback(self._answer)

    @property
    def bodies(self) -> list[str]:
        """The texts of the notes that people wrote."""
        return [note["body"] for note in self.comments if not note["system"]]

    def add(self, author: tuple[str, int], body: str, *, system: bool = False) -> int:
        """Add an existing note; return its number."""
        with self._lock:
            self._last += 1
            name, number = author
            note = {"id": self._last, "author": {"username": name, "id": number}, "body": body}
            self.comments.append({**note, "system": system})
            return self._last

    def close(self) -> None:
        """Stop answering."""
        self.server.close()

    def _answer(self, asked: Asked) -> Reply:
        early = self.before(asked)
        if early is not None:
            return early
        if not any(asked.headers.get(name) == token for name, token in _TOKENS.items()):
            return Reply(status=401, value={"message": "401 Unauthorized"})
        request = f"/api/v4/projects/{PROJECT}/merge_requests/{NUMBER}"
        login, number = self.user
        user = {"username": login, "id": number}
        facts = {
            "/api/v4/user": user,
            "/api/v4/job": {"id": 3, "user": user},
            request: {"iid": NUMBER, "sha": self.head},
        }
        if asked.method == "GET" and asked.path in facts:
            return Reply(value=facts[asked.path])
        if asked.path == f"{request}/notes":
            return self._list(asked) if asked.method == "GET" else self._create(asked)
        found = re.fullmatch(rf"{request}/notes/(\d+)", asked.path)
        return self._change(asked, int(found[1])) if found else _not_found()

    def _list(self, asked: Asked) -> Reply:
        assert asked.query["sort"] == "asc"
        each, page = int(asked.query["per_page"]), int(asked.query["page"])
        with self._lock:
            more = len(self.comments) > page * each
            headers = {"Link": f'<{self.server.url}{asked.path}?page={page + 1}>; rel="next"'} if more else {}
            return Reply(value=self.comments[(page - 1) * each : page * each], headers=headers)

    def _create(self, asked: Asked) -> Reply:
        assert asked.method == "POST"
        number = self.add(self.user, asked.json["body"])
        with self._lock:
            return Reply(status=201, value=next(note for note in self.comments if note["id"] == number))

    def _change(self, asked: Asked, number: int) -> Reply:
        with self._lock:
            found = next((note for note in self.comments if note["id"] == number), None)
            if found is None:
                return _not_found()
            if asked.method == "DELETE":
                self.comments.remove(found)
                return Reply(status=204)
            assert asked.method == "PUT"
            found["body"] = asked.json["body"]
            return Reply(value=found)


def _not_found() -> Reply:
    return Reply(status=404, value={"message": "404 Not found"})
