"""The comments of a pull request, at any forge: all do the same, each with paths and words of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_opprof.errors import ForgePermissionError
from pytest_opprof.forge.client import Api
from pytest_opprof.forge.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Who writes: by number where it is known, else by name."""

    name: str
    number: int | None = None

    def is_same(self, other: Author) -> bool:
        """Whether the two are one."""
        if self.number is not None and other.number is not None:
            return self.number == other.number
        return self.name == other.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment as the forge has it."""

    number: int
    author: Author
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where a forge has a pull request, and what it calls its parts.

    Attributes:
        request: The path of the pull request.
        head: Where its answer has the commit.
        comments: The path of the list of comments, and of new ones.
        comment: The path of a comment, before its number.
        query: Of the list.
        update: The method that writes a comment anew.
        gone: Statuses that mean the comment no longer exists.
        token: The path that says whose the token is.
        token_user: Where its answer has the user.
        fallback: Whose it is where it may not ask; None where every token may.
        user: What a comment calls its author.
        name: What a user calls the name.
        reads: What a refused token lacks to read, as a sentence names it.
        writes: The same to write.
    """

    request: str
    head: tuple[str, ...]
    comments: str
    comment: str
    query: Mapping[str, str] = field(default_factory=dict)
    update: str
    gone: frozenset[int]
    token: str
    token_user: tuple[str, ...] = ()
    fallback: Author | None = None
    user: str
    name: str
    reads: str
    writes: str


class Conversation:
    """The comments of a pull request of a forge.

    Args:
        author: The name that the token writes as; the forge is asked unless it is given.
    """

    def __init__(self, api: Api, places: Places, *, author: str | None = None) -> None:
        self._api = api
        self._places = places
        self._author = author

    def head(self) -> str:
        """The commit that the pull request is at now.

        Raises:
            ForgeError: The forge does not say.
        """
        answer = self._api.ask("GET", self._places.request, needs=self._places.reads)
        return answer.fields.text(*self._places.head)

    def author(self) -> Author:
        """Who the token is of, or who it is known to be of where it may not ask.

        Raises:
            ForgeError: The forge does not answer.
        """
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
        """All comments, on all pages.

        Raises:
            ForgeError: The forge does not list them.
        """
        places = self._places
        pages = self._api.pages(places.comments, needs=places.reads, params=places.query)
        # The forge itself says some, and some are of people who have deleted their account.
        said = (item for page in pages for item in page.items() if not item.is_set("system"))
        return [self._comment(item) for item in said if item.has(places.user)]

    def create(self, body: str) -> Comment:
        """Write a new comment.

        Raises:
            ForgeError: The forge does not take it.
        """
        places = self._places
        answer = self._api.ask("POST", places.comments, needs=places.writes, content={"body": body})
        return self._comment(answer.fields)

    def update(self, number: int, body: str) -> bool:
        """Write a comment anew; False where it is gone.

        Raises:
            ForgeError: The forge does not take it.
        """
        places = self._places
        path = f"{places.comment}/{number}"
        answer = self._api.ask(
            places.update, path, needs=places.writes, content={"body": body}, also=places.gone
        )
        return answer.status not in places.gone

    def delete(self, number: int) -> None:
        """Remove a comment; one that is gone is removed.

        Raises:
            ForgeError: The forge does not let it go.
        """
        places = self._places
        self._api.ask("DELETE", f"{places.comment}/{number}", needs=places.writes, also=places.gone)

    def _comment(self, item: Fields) -> Comment:
        body = item.text("body") if item.has("body") else ""
        author = self._user(item.inside(self._places.user))
        return Comment(number=item.number("id"), author=author, body=body)

    def _user(self, user: Fields) -> Author:
        return Author(name=user.text(self._places.name), number=user.number("id"))
