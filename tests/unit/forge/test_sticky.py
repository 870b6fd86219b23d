"""The marker in the first line of a comment."""

from dataclasses import replace
from typing import cast

import pytest

from pytest_opprof.forge.conversation import Author, Comment, Conversation
from pytest_opprof.forge.sticky import Marker, keep_comment, sticky_key

MARKER = Marker(key="0123456789abcdef", head="b" * 40, run=4, attempt=2)


def test_marker_is_read_from_the_first_line_alone() -> None:
    assert MARKER.line == f"<!-- opprof:sticky v1 key=0123456789abcdef head={'b' * 40} run=4.2 -->"
    for body in (MARKER.line, f"{MARKER.line}\ntext", f"{MARKER.line}\r\ntext", f"{MARKER.line} \ntext"):
        assert Marker.of(body) == MARKER


@pytest.mark.parametrize(
    "body",
    [
        "",
        f"text\n{MARKER.line}",
        f"> {MARKER.line}",
        f"{MARKER.line} more",
        MARKER.line.replace("v1", "v2"),
        MARKER.line.replace("run=4", "run=4000000000000000000"),
        MARKER.line.replace("0123", "012g"),
    ],
)
def test_other_text_is_not_a_marker(body: str) -> None:
    assert Marker.of(body) is None


def test_key_is_unique() -> None:
    keys = {
        sticky_key("a/b", 1, "default"),
        sticky_key("a/b", 11, "default"),
        sticky_key("a/b", 1, "1default"),
        sticky_key("a/b\n1", 1, "default"),
        sticky_key("a/c", 1, "default"),
        sticky_key("a/b", 1, "\ud800"),
    }
    assert len(keys) == 6
    assert all(len(key) == 16 for key in keys)


class Written:
    """A pull request at one commit, with comments of ours."""

    def __init__(self, *runs: int) -> None:
        self.written = {at: replace(MARKER, run=run).line for at, run in enumerate(runs, start=1)}

    def head(self) -> str:
        return MARKER.head

    def author(self) -> Author:
        return Author(name="bot")

    def comments(self) -> list[Comment]:
        return [Comment(number=at, author=self.author(), body=body) for at, body in self.written.items()]

    def update(self, number: int, body: str) -> bool:
        self.written[number] = body
        return True

    def create(self, body: str) -> Comment:
        self.written[len(self.written) + 1] = body
        return self.comments()[-1]

    def delete(self, number: int) -> None:
        del self.written[number]


def kept(forge: Written, run: int) -> str:
    return keep_comment(cast("Conversation", forge), replace(MARKER, run=run).line, creates=True)


def test_the_newest_of_several_comments_decides() -> None:
    forge = Written(1, 5)
    assert kept(forge, 3) == "nothing was written: the comment has a newer result"
    assert forge.written.keys() == {1, 2}


def test_newest_comment_is_updated_and_others_removed() -> None:
    forge = Written(1, 5, 2)
    assert kept(forge, 6) == "updated the comment, and removed duplicates: 2"
    assert forge.written == {2: replace(MARKER, run=6).line}
