"""Sphinx extension: the reference pages, made from what the code itself says when the site is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opprof_docs.directive import Reference, missing_names

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx of the directive, and of the check that the page of the API is whole."""
    app.add_directive("opprof", Reference)
    app.connect("env-check-consistency", missing_names)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
