"""Converts Google-style docstrings to Markdown."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = re.compile(r"(Args|Attributes|Returns|Yields|Raises):")
_ENTRY = re.compile(r"(\w[\w.]*): (.+)", re.DOTALL)


def doc_lines(doc: str) -> Iterator[str]:
    """A docstring as Markdown lines: paragraphs, code blocks, and sections as lists."""
    for paragraph in re.split(r"\n\n(?! )", inspect.cleandoc(doc)):
        head, _, inside = paragraph.partition("\n")
        yield ""
        if match := _HEAD.fullmatch(head):
            yield from _section(match[1], inspect.cleandoc(inside))
        elif match := re.match(r"(.*?)::\n\n((?: .*|\n)+)\Z", paragraph, re.DOTALL):
            yield _prose(match[1] + ":")
            yield from ("", "```py", inspect.cleandoc(match[2]), "```")
        else:
            yield _prose(paragraph)


def _section(title: str, text: str) -> Iterator[str]:
    entries = [_ENTRY.fullmatch(entry) for entry in re.split(r"\n(?! )", text)]
    if title in {"Returns", "Yields"} or not all(entries):
        yield f"{title}: {_joined(text)}"
        return
    yield f"{title}:"
    yield from (f"- `{entry[1]}`: {_joined(entry[2])}" for entry in entries if entry)


def _joined(text: str) -> str:
    return _prose(" ".join(text.split()))


def _prose(text: str) -> str:
    """The text with single backticks around code, as in Markdown."""
    return text.replace("``", "`")
