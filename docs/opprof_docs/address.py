"""Writes the repository's address into the package: ``python -m opprof_docs.address URL COMMIT``.

A release runs it before it builds: a checkout does not contain its own URL, and the README's relative links
do not work on a package index.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_RELATIVE = re.compile(r"\]\((?!https?:|#)([^)]+)\)")
_PICTURE = re.compile(r'(src|srcset)="(?!https?:)([^"]+)"')
_FROM_CHECKOUT = re.compile(r"^\$ pip install \. .*$", re.MULTILINE)


def addressed_readme(text: str, *, url: str, commit: str) -> str:
    """The README with absolute links and pictures, and with the install command for the package index."""
    text = _RELATIVE.sub(lambda link: f"]({url}/blob/{commit}/{link[1]})", text)
    text = _PICTURE.sub(lambda link: f'{link[1]}="{url}/raw/{commit}/{link[2]}"', text)
    return _FROM_CHECKOUT.sub("$ pip install pytest-opprof", text)


def addressed_project(text: str, *, url: str, commit: str) -> str:
    """The pyproject.toml with ``[project.urls]`` added."""
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
