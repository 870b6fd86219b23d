"""Fills in a page's generated parts, between ``<!-- generated: NAME ... -->`` and ``<!-- end -->``."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from opprof_docs import api, bench, commands, contracts, errors, measured, options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_PART: Final = re.compile(
    r"(?P<begin><!-- generated: (?P<words>.+?) -->\n).*?(?P<end><!-- end -->)", re.DOTALL
)
# Functions that generate Markdown lines; further words of the HTML comment are their arguments.
_PARTS: Final[Mapping[str, Callable[..., Iterable[str]]]] = MappingProxyType(
    {
        "api": api.api_lines,
        "bench": bench.bench_lines,
        "bench-headline": bench.headline_lines,
        "bench-machine": bench.machine_lines,
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


def filled(text: str) -> str:
    """The page with its generated parts written anew."""
    return _PART.sub(_part, text)


def _part(match: re.Match[str]) -> str:
    name, *arguments = match["words"].split()
    return "\n".join((match["begin"].rstrip(), *_PARTS[name](*arguments), match["end"]))
