"""A job of many ranks, or two jobs, as one HTML file: readable without a network, whatever its names hold."""

from __future__ import annotations

import html

from pytest_opprof.report.fleet import fleet_lines
from pytest_opprof.report.html.packing import columns, script_json, style_and_script
from pytest_opprof.report.text import Line, Style, escaped
from pytest_opprof.results.fleet import Fleet, FleetSummary, fleet_to_document

_WIDTH = 120
_TONES = {Style.BAD, Style.WARN, Style.GOOD}
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>opprof: {title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<header><h1>{title}</h1></header>
<main id="fleet">
<pre class="code scroll" tabindex="0">{lines}</pre>
<noscript>This page's script draws the figures and tables. Turn on JavaScript.</noscript>
</main>
<script type="application/json" id="index">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def fleet_page(found: Fleet) -> str:
    """A job with a heat map of lateness and a table of ranks; or two, with the ops that changed."""
    document = fleet_to_document(found)
    if isinstance(found, FleetSummary):
        document["ranks"] = columns(document["ranks"])
        title, rows, data = f"{found.job}, window {found.window}", 0, {"summary": document}
    else:
        title, rows = f"{found.base} → {found.head}", len(found.failures)
        data = {"difference": document}
    parts = style_and_script(("dom", "units", "fleet"))
    return _PAGE.format(
        title=html.escape(escaped(title)),
        lines="\n".join(map(_markup, fleet_lines(found, rows=rows, width=_WIDTH))),
        data=script_json(data),
        style=parts["style"],
        script=parts["script"],
        policy=html.escape(parts["policy"]),
    )


def _markup(line: Line | str) -> str:
    if isinstance(line, str):
        return html.escape(line)
    text = html.escape(line.text)
    return f'<span class="{line.style}">{text}</span>' if line.style in _TONES else text
