"""The comments of a pull request on any forge: forges differ only in paths and field names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_opprof.errors import ForgePermissionError
from pytest_opprof.forge.client import Api
from pytest_opprof.forge.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """A user: identified by number if known, else by name."""

    name: str
    number: int | None = None

    def is_same(self, other: Author) -> bool:
        """Whether both are the same user."""
        if self.number is not None and other.number is not None:
            return self.number == other.number
        return self.name == other.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment on the forge."""

    number: int
    author: Author
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """A forge's paths and field names."""

    request: str  # the path of the pull request
    head: tuple[str, ...]  # the place of the head commit in its answer
    comments: str  # the path of the list of comments, and of new ones
    comment: str  # the path of a comment, without its number
    query: Mapping[str, str] = field(default_factory=dict)  # parameters of the list
    update: str  # the HTTP method that replaces a comment's text
    gone: frozenset[int]  # statuses that mean the comment no longer exists
    token: str  # the path that gives the token's user
    token_user: tuple[str, ...] = ()  # the place of the user in its answer
    fallback: Author | None = None  # the token's user if it may not ask; None if every token may
    user: str  # a comment's field for its author
    name: str  # a user's field for the name
    reads: str  # a clause for errors: the permission needed to read
    writes: str  # the same for writing


class Conversation:
    """The comments of a pull request; without `author`, the forge is asked for the token's user."""

    def __init__(self, api: Api, places: Places, *, author: str | None = None) -> None:
        self._api = api
        self._places = places
        self._author = author

    def head(self) -> str:
        """The pull request's current commit."""
        answer = self._api.ask("GET", self._places.request, needs=self._places.reads)
        return answer.fields.text(*self._places.head)

    def author(self) -> Author:
        """The token's user, or the fallback if the token may not ask."""
        if self._author is not None:
            return Author(name=self._author)
        try:
            answer = self._api.ask("GET", self._places.token, needs=self._places.reads)
        except ForgePermissionError:
            if self._places.fallback is None:
                raise
            return self._places.fallback
        return self._user(answer.fields.inside(*self._places.token_user))

    def comments(self) -> Sequence[Comment]:
        """All comments, on all pages."""
        places = self._places
        pages = self._api.pages(places.comments, needs=places.reads, params=places.query)
        # Comments by the forge itself, and by deleted accounts, are skipped.
        said = (item for page in pages for item in page.items() if not item.is_set("system"))
        return [self._comment(item) for item in said if item.has(places.user)]

    def create(self, body: str) -> Comment:
        """Write a new comment."""
        places = self._places
        answer = self._api.ask("POST", places.comments, needs=places.writes, content={"body": body})
        return self._comment(answer.fields)

    def update(self, number: int, body: str) -> bool:
        """Replace a comment's text; False if the comment no longer exists."""
        places = self._places
        path = f"{places.comment}/{number}"
        answer = self._api.ask(
            places.update, path, needs=places.writes, content={"body": body}, also=places.gone
        )
        return answer.status not in places.gone

    def delete(self, number: int) -> None:
        """Remove a comment if it still exists."""
        places = self._places
        self._api.ask("DELETE", f"{places.comment}/{number}", needs=places.writes, also=places.gone)

    def _comment(self, item: Fields) -> Comment:
        body = item.text("body") if item.has("body") else ""
        author = self._user(item.inside(self._places.user))
        return Comment(number=item.number("id"), author=author, body=body)

    def _user(self, user: Fields) -> Author:
        return Author(name=user.text(self._places.name), number=user.number("id"))
