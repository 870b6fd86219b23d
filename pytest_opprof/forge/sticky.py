"""One comment of ours on a pull request for each configuration: updated, and never to an older result.

The comment's first line is a marker that readers do not see. Only comments by our own user are ours, because
anybody can quote a marker. Forges have no conditional writes: two jobs that write at once may both create a
comment, or one may overwrite the other's newer one. So each writer looks again and repairs this: of several
comments the newest stays, and a newer result that was lost is written again.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from pytest_opprof.forge.conversation import Author, Comment, Conversation

_MARKER = re.compile(
    r"<!-- opprof:sticky v1 key=(?P<key>[0-9a-f]{16}) head=(?P<head>[0-9a-f]{7,64})"
    r" run=(?P<run>[0-9]{1,18})\.(?P<attempt>[0-9]{1,18}) -->"
)
_DIGITS = 16
_SHORT = 7
# Each look repairs what other jobs did since the last one. If they interfere each time, we give up.
_MOST_LOOKS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """What a comment is about, and how new it is."""

    key: str  # the comment's subject, sixteen hex digits (`sticky_key`)
    head: str  # the measured commit
    run: int  # the number of the CI's run; a later run has a higher one
    attempt: int

    @property
    def line(self) -> str:
        """The first line of the comment."""
        which = f"key={self.key} head={self.head} run={self.run}.{self.attempt}"
        return f"<!-- opprof:sticky v1 {which} -->"

    @classmethod
    def of(cls, body: str) -> Marker | None:
        """The marker in a comment's first line; None without one."""
        found = _MARKER.fullmatch(body.partition("\n")[0].rstrip())
        if found is None:
            return None
        return cls(key=found["key"], head=found["head"], run=int(found["run"]), attempt=int(found["attempt"]))

    def rank(self, head: str) -> tuple[bool, int, int]:
        """Sorts markers by how new they are; `head` is the pull request's current commit."""
        return (self.head == head, self.run, self.attempt)


def sticky_key(repository: str, pull_request: int, configuration: str) -> str:
    """Identifies the comment of one configuration on one pull request."""
    text = "\n".join((repository, str(pull_request), configuration))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def keep_comment(conversation: Conversation, body: str, *, creates: bool) -> str:
    """Make this our only comment with its marker's key on the pull request, and say what was done.

    If there is none yet, it is written only if `creates`.
    """
    marker = Marker.of(body)
    assert marker is not None, "who renders a comment begins with its marker"
    head = conversation.head()
    if head != marker.head:
        return (
            f"nothing was written: {marker.head[:_SHORT]} was measured, and the pull request is now at "
            f"{head[:_SHORT]}"
        )
    found = _ours(conversation, conversation.author(), marker, head)
    if found and found[0][0].rank(head) > marker.rank(head):
        return "nothing was written: the comment has a newer result"
    if not found and not creates:
        return "nothing was written: there is no comment yet, and no failure to report"
    if found and conversation.update(found[0][1].number, body):
        author, done = found[0][1].author, "updated the comment"
    else:
        author, done = conversation.create(body).author, "wrote a comment"
    removed = _settle(conversation, author, marker, body)
    return f"{done}{f', and removed duplicates: {removed}' if removed else ''}"


def _settle(conversation: Conversation, author: Author, marker: Marker, body: str) -> int:
    """Repair what other jobs did meanwhile, and count the removed comments."""
    removed = 0
    for _ in range(_MOST_LOOKS):
        found = _ours(conversation, author, marker, marker.head)
        for _, comment in found[1:]:
            conversation.delete(comment.number)
            removed += 1
        if found and found[0][0].rank(marker.head) >= marker.rank(marker.head):
            break
        if not found or not conversation.update(found[0][1].number, body):
            conversation.create(body)
    return removed


def _ours(
    conversation: Conversation, author: Author, marker: Marker, head: str
) -> list[tuple[Marker, Comment]]:
    """This author's comments with this key: newest result first, and of equals the oldest comment first."""
    found = [
        (its, comment)
        for comment in conversation.comments()
        if comment.author.is_same(author)
        and (its := Marker.of(comment.body)) is not None
        and its.key == marker.key
    ]
    found.sort(key=lambda one: one[1].number)
    found.sort(key=lambda one: one[0].rank(head), reverse=True)
    return found
