"""Gives the package the address of its repository: ``python -m opprof_docs.address URL COMMIT``.

A release runs it before it builds. The checkout does not know where it is kept, and a package index shows
the README at a place where relative links lead nowhere.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_RELATIVE = re.compile(r"\]\((?!https?:|#)([^)]+)\)")
_FROM_CHECKOUT = re.compile(r"^\$ pip install \. .*$", re.MULTILINE)


def addressed_readme(text: str, *, url: str, commit: str) -> str:
    """The README with absolute links, and installed from the index."""
    text = _RELATIVE.sub(lambda link: f"]({url}/blob/{commit}/{link[1]})", text)
    return _FROM_CHECKOUT.sub("$ pip install pytest-opprof", text)


def addressed_project(text: str, *, url: str, commit: str) -> str:
    """The pyproject.toml with ``[project.urls]``."""
    urls = f"""[project.urls]
Source = "{url}"
Documentation = "{url}/tree/{commit}/docs"
Changelog = "{url}/blob/{commit}/CHANGELOG.md"
Issues = "{url}/issues"

"""
    return text.replace("[project.scripts]\n", f"{urls}[project.scripts]\n", 1)


if __name__ == "__main__":
    _, _url, _commit = sys.argv
    for _name, _addressed in (("README.md", addressed_readme), ("pyproject.toml", addressed_project)):
        _path = Path(_name)
        _text = _path.read_text(encoding="utf-8")
        _path.write_text(_addressed(_text, url=_url, commit=_commit), encoding="utf-8")
