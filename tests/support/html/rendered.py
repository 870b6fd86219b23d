"""Rendered pages: Markdown by GitHub's own renderer and by another one, HTML by a parser."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from xml.etree import ElementTree as ET

import cmarkgfm
import html5lib
from cmarkgfm.cmark import Options
from markdown_it import MarkdownIt

# elements in which forges do not look for mentions, references and addresses
INERT = frozenset({"code", "pre", "a"})


@dataclass(frozen=True)
class Piece:
    """A text of a page.

    Attributes:
        text: The text.
        inside: The elements around it.
    """

    text: str
    inside: tuple[str, ...]

    @property
    def is_live(self) -> bool:
        """Whether GitHub and GitLab look in it for mentions, references, emoji and addresses."""
        return INERT.isdisjoint(self.inside)


@cache
def _markdown_it() -> MarkdownIt:
    # The features that forges enable: tables, bare addresses, strikethrough, and raw HTML.
    return MarkdownIt("gfm-like", {"html": True, "linkify": True})


def pages(markdown: str) -> list[ET.Element]:
    """The page from each renderer."""
    return [parsed(github_html(markdown)), parsed(_markdown_it().render(markdown))]


def github_html(markdown: str) -> str:
    """The page that GitHub makes of Markdown."""
    html: str = cmarkgfm.github_flavored_markdown_to_html(markdown, options=Options.CMARK_OPT_UNSAFE)
    return html


def parsed(html: str) -> ET.Element:
    """The elements that a browser makes of HTML, at the root of a page's body."""
    fragment: ET.Element = html5lib.parseFragment(html, treebuilder="etree", namespaceHTMLElements=False)
    return fragment


def elements(page: ET.Element) -> Iterator[ET.Element]:
    """All elements but the root and comments."""
    return (one for one in page.iter() if not _is_comment(one) and one is not page)


def comments(page: ET.Element) -> list[str]:
    """The texts of all comments."""
    return [one.text or "" for one in page.iter() if _is_comment(one)]


def _is_comment(element: Any) -> bool:
    # a comment's tag is the function that makes comments
    return not isinstance(element.tag, str)


def pieces(element: Any, inside: tuple[str, ...] = ()) -> Iterator[Piece]:
    """Every text, with the elements around it."""
    around = inside if _is_comment(element) else (*inside, element.tag)
    if element.text and not _is_comment(element):
        yield Piece(element.text, around)
    for child in element:
        yield from pieces(child, around)
        if child.tail:
            yield Piece(child.tail, around)


def text_of(element: ET.Element) -> str:
    """All text of an element."""
    return "".join(piece.text for piece in pieces(element))


def _cell(element: ET.Element) -> str:
    """The text of a cell, with its line ends."""
    inner = "".join(_cell(child) + (child.tail or "") for child in element)
    return "\n" if element.tag == "br" else (element.text or "") + inner


def tables(page: ET.Element) -> list[list[list[str]]]:
    """The cells' texts of every table, row by row; the first row is its head."""
    return [
        [[_cell(cell) for cell in row.iter() if cell.tag in {"th", "td"}] for row in table.iter("tr")]
        for table in page.iter("table")
    ]
