"""The examples of a page: its fenced blocks, and what invisible comments say of them.

A comment stands on the line before its block, and is seen neither on GitHub nor in the site::

    <!-- example: file tests/test_model.py -->    the block is this file of the page's project
    <!-- example: exit 1 -->                      its last command ends with 1, the others with 0
    <!-- example: in place of it COMMAND -->      what is run instead, and must print what is shown
    <!-- example: prints TEXT -->                 the program prints this, among other text
    <!-- example: not run: REASON -->             it is not run, and why

A block that nobody is to see stands inside of a comment, which begins with ``<!-- example: hidden``, perhaps with
one of the words above behind that. Of a whole page one comment says ``<!-- examples: need torch -->``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path

_REPOSITORY = Path(__file__).parents[2]
_COMMENT = re.compile(r"<!-- example: (?P<words>.+?) -->\s*")
_HIDDEN = re.compile(r"<!-- example: hidden ?(?P<words>.*)")
_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,})(?P<language>\S*)\s*")
_NEED = re.compile(r"<!-- examples: need (?P<library>\w+) -->")
# Outputs, and what the generated parts declare.
_SHOWN = ("text", "py", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One example.

    Attributes:
        line: The line of its fence, from 1.
        language: The fence's language.
        text: The content, without the newline at its end.
        hidden: Readers do not see it.
        file: The file to write it to.
        exit_code: The exit code of its last command.
        instead: The command to run in its place.
        prints: What its program prints, among other text.
        reason: Why it is not run.
    """

    line: int
    language: str
    text: str
    hidden: bool = False
    file: str | None = None
    exit_code: int = 0
    instead: str | None = None
    prints: str = ""
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page with its examples, in their order."""

    path: Path
    blocks: tuple[Block, ...]
    needs: tuple[str, ...]

    @property
    def run(self) -> list[Block]:
        """The blocks that are run."""
        return [block for block in self.blocks if block.reason is None]

    @property
    def left_out(self) -> list[Block]:
        """The blocks that are not."""
        return [block for block in self.blocks if block.reason is not None]


def all_pages() -> list[Page]:
    """The README and the pages of docs/ that have examples."""
    paths = [_REPOSITORY / "README.md", *sorted((_REPOSITORY / "docs").glob("*.md"))]
    return [page for page in map(read_page, paths) if page.blocks]


def count(blocks: list[Block]) -> int:
    """How many examples readers see."""
    return sum(not block.hidden for block in blocks)


def read_page(path: Path) -> Page:
    """Read the examples of a page.

    Raises:
        ValueError: A comment is unknown, or no block follows it.
    """
    text = path.read_text(encoding="utf-8")
    blocks = []
    lines = iter(enumerate(text.splitlines(), start=1))
    words, hidden = "", False
    for number, line in lines:
        where = f"{path.name}:{number}"
        if fence := _FENCE.fullmatch(line):
            inside = [below for _, below in takewhile(partial(_is_inside, fence["fence"]), lines)]
            block = _block(fence["language"], inside, words=words, hidden=hidden, line=number, where=where)
            blocks += [block] if block else []
            words, hidden = "", False
        elif comment := _COMMENT.fullmatch(line) or _HIDDEN.fullmatch(line):
            words, hidden = comment["words"], comment.re is _HIDDEN
        elif words and not hidden and line.strip():
            raise ValueError(f"{where}: no block follows {words!r}")
    return Page(
        path=path, blocks=tuple(blocks), needs=tuple(match["library"] for match in _NEED.finditer(text))
    )


def _is_inside(fence: str, numbered: tuple[int, str]) -> bool:
    return numbered[1].strip() != fence


def _block(
    language: str, inside: list[str], *, words: str, hidden: bool, line: int, where: str
) -> Block | None:
    """An example, or None if the fence's content is only shown."""
    if language in _SHOWN or language.startswith("{"):
        if words:
            raise ValueError(f"{where}: {words!r} is said of a block that is not run")
        return None
    block = Block(line=line, language=language, text="\n".join(inside), hidden=hidden)
    return _said(block, words, where=where)


def _said(block: Block, words: str, *, where: str) -> Block:
    """A block with the settings of the comment before it."""
    if not words:
        return block
    if words.startswith("file "):
        return replace(block, file=words.removeprefix("file "))
    if words.startswith("in place of it "):
        return replace(block, instead=words.removeprefix("in place of it "))
    if words.startswith("prints "):
        return replace(block, prints=words.removeprefix("prints "))
    if words.startswith("not run: "):
        return replace(block, reason=words.removeprefix("not run: "))
    if code := re.fullmatch(r"exit ([0-9]+)", words):
        return replace(block, exit_code=int(code[1]))
    raise ValueError(f"{where}: nobody knows what 'example: {words}' means")
