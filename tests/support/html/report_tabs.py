"""The HTML report in a browser tab, read and operated by tests."""

import json
from pathlib import Path

from benchmarks.browser import Tab


def written(folder: Path, text: str) -> str:
    """Write a page.

    Returns:
        Its address.
    """
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8")
    return path.as_uri()


def texts(tab: Tab, selector: str) -> list[str]:
    """The texts of the elements that a selector finds."""
    found: list[str] = tab.run(
        f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.textContent)"
    )
    return found


def shown_tests(tab: Tab) -> list[str]:
    """The tests of the list, from top to bottom."""
    return texts(tab, "main tbody th a")


def open_test(tab: Tab, node_id: str) -> None:
    """Click a test of the list."""
    tab.run(
        f"[...document.querySelectorAll('main a')].find((one) => one.textContent === {json.dumps(node_id)}).click()"
    )
    tab.wait("document.querySelector('article')")


def fill_in(tab: Tab, label: str, text: str) -> None:
    """Type into the field with this label."""
    tab.run(
        f"[...document.querySelectorAll('.field')].find((one) => one.textContent === {json.dumps(label)}).querySelector('input').select()"
    )
    tab.type(text)


def rows_of(tab: Tab, label: str) -> list[list[str]]:
    """The cells of a table's visible rows."""
    found: list[list[str]] = tab.run(
        f"""[...document.querySelectorAll('[aria-label={json.dumps(label)}] tbody tr')].map(
            (row) => [...row.cells].map((cell) => cell.textContent))"""
    )
    return found


def boxes(tab: Tab) -> list[str]:
    """The texts of the call tree's boxes."""
    return texts(tab, ".flame [role=treeitem]")
