"""The directive that writes a reference: ``{opprof} options``."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import pytest_opprof
from opprof_docs import commands, contracts, errors, measured, options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

# What can be written where, each as the lines of its Markdown.
REFERENCES: Mapping[str, Callable[[], Iterable[str]]] = MappingProxyType(
    {
        "commands": commands.command_lines,
        "errors": errors.error_lines,
        "fingerprint": measured.fingerprint_lines,
        "marker": options.marker_lines,
        "metrics-of-ops": measured.op_lines,
        "options": options.option_lines,
        "presets": measured.preset_lines,
        "schemas": contracts.schema_lines,
        "totals": measured.total_lines,
        "watched": measured.watched_lines,
    }
)


class Reference(SphinxDirective):
    """Writes one of `REFERENCES` where it stands."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Read the Markdown as if it stood in the page: headings below the page's own have ``##``."""
        make = REFERENCES.get(self.arguments[0])
        if make is None:
            raise self.error(f"there is no reference {self.arguments[0]!r}: {', '.join(REFERENCES)}")
        root = nodes.container()
        root.document = self.state.document
        text = StringList(list(make()), source=self.arguments[0])
        self.state.nested_parse(text, 0, root, match_titles=True)
        return list(root.children)


def missing_names(_app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of each public name that no page describes: a build takes a warning for an error."""
    described = env.get_domain("py").data["objects"]
    for name in pytest_opprof.__all__:
        if f"pytest_opprof.{name}" not in described:
            logging.getLogger(__name__).warning("pytest_opprof.%s is on no page: docs/api.md", name)
