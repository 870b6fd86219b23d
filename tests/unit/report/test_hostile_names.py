"""No name has an effect in any report: each report is read as its readers do."""

import html
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from xml.etree import ElementTree as ET

import html5lib
import pytest
from hypothesis import given, settings
from support.documents import hostile
from support.documents.compared import cloning, regressions
from support.documents.metric_lines import by_gitlab, by_prometheus
from support.forges.workflow_commands import commands
from support.html.rendered import comments, elements, pages, pieces, tables, text_of

from pytest_opprof.compare.common_cause import common_causes
from pytest_opprof.compare.comparison import Comparison
from pytest_opprof.compare.document import comparison_from_document, comparison_to_document
from pytest_opprof.compare.timing.document import time_comparison_from_document, time_comparison_to_document
from pytest_opprof.report.formats import FORMATS
from pytest_opprof.report.markdown import gitlab_note, job_summary, markdown_comment
from pytest_opprof.report.summary import Judged, Summary
from pytest_opprof.report.text import escaped
from pytest_opprof.results.files import parse
from pytest_opprof.results.schema import Contract, validate

MARKER = "<!-- opprof:sticky v1 key=0 head=1 run=1.1 -->"
# The elements of our pages, and the renderers' attributes, none of which can do anything.
ELEMENTS = {
    *("h3", "p", "br", "ul", "li", "strong", "code", "details", "summary"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {("th", "align"), ("td", "align"), ("th", "style"), ("td", "style")}
ALIGNED = {"left", "right", "text-align:left", "text-align:right"}
# texts that forges interpret outside of code
OBEYED = re.compile(r"[@#!$~%^&][\w\"]|GH-\d|://|www\.|:\w+:|\[|\]|[<>`\\]|[0-9a-f]{7}")
CASES = {"testsuites", "testsuite", "testcase", "properties", "property", "failure", "error", "skipped"}


def check_markdown(text: str, judged: Judged) -> None:
    assert not hidden(text)
    for page in pages(text):
        assert {one.tag for one in elements(page)} <= ELEMENTS
        found = {(one.tag, name): value for one in elements(page) for name, value in one.attrib.items()}
        assert found.keys() <= ATTRIBUTES
        assert set(found.values()) <= ALIGNED
        assert comments(page) == []
        live = [piece.text for piece in pieces(page) if piece.is_live]
        assert not [one for one in live if hostile.NEEDLE in one]
        assert not [one for one in live if OBEYED.search(one)]
        for table in tables(page):
            assert {len(row) for row in table} == {len(table[0])}
        # Every fold is in its place: no name closed one, and none contains another.
        assert {one.tag for one in page} <= {"h3", "p", "ul", "table", "details"}
        assert not page.findall(".//details//details")
    page, _ = pages(text)
    check_texts_survive(page, judged)


def check_texts_survive(page: ET.Element, judged: Judged) -> None:
    """Each failing test is named by its name or its escaped name."""
    told = {text_of(code) for code in page.iter("code")}
    for test in Summary.of(judged).tests:
        name = escaped(test.node_id.partition("::")[2])
        if test.is_failing and len(name) <= 32 and name.isascii():
            assert told & {name, escaped(test.node_id)}


def check_junit(text: str, judged: Judged) -> None:
    assert not hidden(text)
    root = ET.fromstring(text.encode())  # noqa: S314 - ours, and it has to hold
    assert {one.tag for one in root.iter()} <= CASES
    names = [(case.get("file"), case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert [(file, f"{classes}::{name}".rpartition("::")[2]) for file, classes, name in names] == [
        (escaped(test.node_id.partition("::")[0]), escaped(test.node_id.rpartition("::")[2]))
        for test in Summary.of(judged).tests
    ]
    assert {key for one in root.iter() for key in one.attrib} <= {
        *("name", "tests", "failures", "errors", "skipped", "timestamp", "time", "classname", "file"),
        *("value", "type", "message"),
    }


def check_annotations(text: str, judged: Judged) -> None:
    assert not hidden(text)
    found = commands(text)
    summary = Summary.of(judged)
    causes = common_causes(summary.exact)
    caused = {test.node_id for cause in causes for test in cause.tests}
    others = {
        (test.verdict, test.reason)
        for test in summary.tests
        if test.is_failing and test.node_id not in caused
    }
    assert len(found) == len(causes) + len(others)
    for one in found:
        assert one.kind in {"error", "warning"}
        assert one.properties.keys() <= {"file", "line", "title"}
        assert one.properties["title"].startswith("opprof: ")
        assert re.fullmatch("[0-9]*", one.properties.get("line", ""))
        assert not hidden("".join([one.message, *one.properties.values()]))


def check_openmetrics(text: str, judged: Judged) -> None:
    assert not hidden(text)
    found = by_prometheus(text)
    assert {name for name, _ in found} <= {"opprof_ops_count", "opprof_ranges_count"}
    assert sorted(map(float, by_gitlab(text).values())) == sorted(found.values())
    ran = [test for test in Summary.of(judged).tests if test.did_run]
    assert len(found) == 2 * len(ran)


def check_html(text: str, _: Judged) -> None:
    page = html5lib.parse(text, treebuilder="etree", namespaceHTMLElements=False)
    plain = html5lib.parse(FORMATS["html"](cloning()), treebuilder="etree", namespaceHTMLElements=False)
    ours = {(one.tag, *sorted(one.keys())) for one in elements(plain)}
    # Notes and differing fields have their own elements and classes, without names.
    ours |= {
        ("p", "class"),
        ("tr", "class"),
        ("span", "class"),
        ("div", "aria-label", "class", "role", "tabindex"),
    }
    ours |= {
        ("details",),
        ("summary",),
        ("table",),
        ("thead",),
        ("tbody",),
        ("tr",),
        ("td",),
        ("th", "scope"),
    }
    assert {(one.tag, *sorted(one.keys())) for one in elements(page)} <= ours
    assert comments(page) == []
    assert not [value for one in elements(page) for value in one.attrib.values() if hostile.NEEDLE in value]
    for one in elements(page):
        if one.tag == "script" and one.get("type") == "application/json":
            json.loads(one.text or "")
        elif one.tag in {"script", "style"}:
            assert hostile.NEEDLE not in (one.text or "")


def check_badge(text: str, _: Judged) -> None:
    assert not hidden(text)
    assert hostile.NEEDLE not in text
    json.loads(text)


CHECKS: Mapping[str, Callable[[str, Judged], None]] = {
    "html": check_html,
    "markdown": check_markdown,
    "summary": check_markdown,
    "gitlab": check_markdown,
    "junit": check_junit,
    "annotations": check_annotations,
    "openmetrics": check_openmetrics,
    "badge": check_badge,
}


def hidden(text: str) -> list[str]:
    """Characters that control a terminal or text direction, or are invisible; line ends are ours."""
    return [char for char in text if char != "\n" and not char.isprintable()]


def as_read(judged: Judged) -> Judged:
    """The comparison after a round trip through its file; nothing is lost."""
    if isinstance(judged, Comparison):
        document = parse(json.dumps(comparison_to_document(judged)).encode(), where="here")
        found: Judged = comparison_from_document(
            validate(document, Contract.COMPARISON, where="here"), where="here"
        )
    else:
        document = parse(json.dumps(time_comparison_to_document(judged)).encode(), where="here")
        found = time_comparison_from_document(
            validate(document, Contract.COMPARISON, where="here"), where="here"
        )
    return found


def test_every_format_has_its_check() -> None:
    assert CHECKS.keys() == FORMATS.keys()


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=300 if os.environ.get("OPPROF_COUNTS") == "all" else 5)
@given(judged=hostile.judged)
def test_hostile_names_are_inert(name: str, judged: Judged) -> None:
    text = FORMATS[name](as_read(judged))
    text.encode("utf-8")
    CHECKS[name](text, judged)


@pytest.mark.parametrize("name", FORMATS)
def test_each_dangerous_piece_is_inert_alone(name: str) -> None:
    comparison = cloning()
    (test,) = comparison.tests
    *others, change = test.changes
    told = []
    for piece in hostile.PIECES[:: 1 if name == "markdown" else 3]:
        text = f"{piece}{hostile.NEEDLE}{piece}"
        changes = (*others, replace(change, op=text, cause=text))
        told.append(
            replace(test, node_id=f"{text}::{text}", reason=text, changes=changes, advisories=(text,))
        )
    judged = replace(comparison, tests=tuple(told), notes=(hostile.NEEDLE,))
    # a missing test has no location, and only ten of a kind are shown
    for part in (judged,) if name != "annotations" else (replace(judged, tests=(one,)) for one in told):
        CHECKS[name](FORMATS[name](part), part)


def test_a_marker_is_found_nowhere_but_in_the_first_line() -> None:
    comparison = regressions(2, stem=f"x{MARKER}")
    for text in (markdown_comment(comparison, marker=MARKER), gitlab_note(comparison, marker=MARKER)):
        assert text.startswith(f"{MARKER}\n")
        for page in pages(text):
            assert comments(page) == [MARKER[4:-3]]


def test_a_name_of_a_megabyte_is_cut() -> None:
    name = f"<b>{'x|`' * 350_000}</b>"
    comparison = cloning()
    (test,) = comparison.tests
    change = replace(test.changes[-1], op=name, cause=name)
    told = replace(test, node_id=name, reason=name, changes=(change,), advisories=(name,))
    judged = replace(comparison, tests=(told,), notes=(name,))
    for text in (markdown_comment(judged), job_summary(judged), gitlab_note(judged)):
        assert len(text) < 30_000
        assert html.escape("<b>xx") not in text
        for page in pages(text):
            assert "b" not in {one.tag for one in elements(page)}
    assert len(FORMATS["annotations"](judged)) < 20_000
