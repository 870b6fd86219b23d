"""A comparison as one HTML file: readable without a network, and harmless whatever its names hold.

Data reaches the page as JSON that no HTML parser can take for markup; the page's script makes elements and
sets text as text. The page's own policy forbids every request, every other script, and parsing markup.
"""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pytest_opprof.compare.timing.document import time_comparison_to_document
from pytest_opprof.extras import needed
from pytest_opprof.report.html.data import Trend, page_index, test_details
from pytest_opprof.report.html.packing import packed_json, script_json, style_and_script
from pytest_opprof.report.summary import Judged, Summary
from pytest_opprof.report.terminal import VERDICT_STYLES
from pytest_opprof.report.text import Style, escaped

# In the page's order: each uses those above it.
_SCRIPTS = "dom units data table boxes tree flame charts ops causes test list page"


def html_report(comparison: Judged, *, history: Mapping[str, Sequence[Trend]] | None = None) -> str:
    """A comparison as a page, with the metrics of tests over earlier runs by node id."""
    summary = Summary.of(comparison)
    times: dict[str, Any] = {}
    if summary.times is not None:
        document = time_comparison_to_document(summary.times)
        times = {test["node_id"]: test for test in document["times"]["tests"]}
    trends = history or {}
    details = (
        test_details(test, summary, times=times.get(test.node_id), trends=trends.get(test.node_id, ()))
        for test in summary.tests
    )
    text: str = _template().render(
        **_heading(summary),
        **_static(),
        index=_markup(script_json(page_index(summary))),
        packed=(_markup(packed_json(each)) for each in details),
    )
    return text


@functools.cache
def _static() -> Mapping[str, Any]:
    """The same in every page."""
    parts = style_and_script(_SCRIPTS.split())
    return {**parts, "style": _markup(parts["style"]), "script": _markup(parts["script"])}


def _markup(text: str) -> Any:
    """Text that is markup already: our own, or JSON without a character that HTML knows."""
    import markupsafe  # noqa: PLC0415 - it comes with jinja2

    return markupsafe.Markup(text)  # noqa: S704 - the callers say why it is safe


@functools.cache
def _template() -> Any:
    jinja2 = needed("jinja2", extra="report", by="the HTML report")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=False, keep_trailing_newline=True
    )
    source = importlib.resources.files(__package__).joinpath("page.html.j2").read_text(encoding="utf-8")
    return environment.from_string(source)


def _heading(summary: Summary) -> dict[str, Any]:
    """The heading over the tests, with unprintable characters escaped."""
    base, head = summary.exact.base, summary.exact.head
    verdict, _, rest = summary.headline.rpartition(": ")
    tone = VERDICT_STYLES[summary.verdict] if summary.verdict and verdict else Style.PLAIN
    fields = [
        {name: escaped(text) for name, text in asdict(one).items()} | {"differs": one.differs}
        for one in summary.environment
    ]
    return {
        "title": f"opprof: {summary.headline}",
        "verdict": verdict,
        "tone": Style.WARN if tone is Style.GOOD and summary.failed else tone,
        "headline": rest,
        "totals": summary.totals,
        "base": escaped(base.title) if base else None,
        "head": escaped(head.title),
        "created": f"{summary.exact.created:%Y-%m-%d %H:%M} UTC",
        "version": escaped(summary.exact.opprof_version),
        "notes": [escaped(note) for note in summary.notes],
        "environment": fields,
        "differing": sum(field["differs"] for field in fields),
    }
