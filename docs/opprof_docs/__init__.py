"""Sphinx extension: the reference pages, made from what the code itself says when the site is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx of the directive, and of the check that the page of the API is whole."""
    # Tests look at the references where Sphinx is not installed.
    from opprof_docs.directive import Reference, missing_names  # noqa: PLC0415

    app.add_directive("opprof", Reference)
    app.connect("env-check-consistency", missing_names)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
