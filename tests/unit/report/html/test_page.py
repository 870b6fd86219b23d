"""The page as text: what an HTML parser finds in it."""

import base64
import gzip
import hashlib
import importlib.resources
import json
import sys
from html.parser import HTMLParser
from typing import Any

import pytest
from support.documents.compared import compared, mixed, named, slower
from support.documents.strategies import simple_run
from support.html.pages import (
    HOSTILE,
    NEW,
    OTHER,
    SAME,
    WORSE,
    hostile_comparison,
    small_comparison,
    small_history,
)

from pytest_opprof.compare.comparison import Comparison
from pytest_opprof.compare.document import comparison_from_document, comparison_to_document
from pytest_opprof.errors import UsageError
from pytest_opprof.report.html import page
from pytest_opprof.report.html.page import html_report


class Parsed(HTMLParser):
    """The elements of a page, and the contents of those that tests ask for."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._is_inside = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts.append("")
        self._is_inside = True

    def handle_endtag(self, tag: str) -> None:
        self._is_inside = False

    def handle_data(self, data: str) -> None:
        if self._is_inside:
            self.texts[-1] += data

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [
            (attributes, text)
            for (name, attributes), text in zip(self.elements, self.texts, strict=True)
            if name == tag
        ]

    @property
    def index(self) -> dict[str, Any]:
        (text,) = (text for attributes, text in self.all("script") if attributes.get("id") == "index")
        found: dict[str, Any] = json.loads(text)
        return found

    def test(self, number: int) -> dict[str, Any]:
        (text,) = (t for attributes, t in self.all("script") if attributes.get("id") == f"packed-{number}")
        found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(json.loads(text))))
        return found


def test_failures_come_first_and_the_headline_counts_them() -> None:
    parsed = Parsed(html_report(small_comparison()))
    assert [row["node_id"] for row in parsed.index["tests"]] == [WORSE, OTHER, NEW, SAME]
    ((_, title),) = parsed.all("title")
    assert title == "opprof: REGRESSED: 1 of 4 tests"
    assert "1 regressed, 1 changed, 1 new, 1 passed · nothing dropped" in [
        text for _, text in parsed.all("p")
    ]


def test_single_run_headline_has_no_verdict() -> None:
    run = simple_run(named("a", {"aten::mul": 1}), named("b", {"aten::mul": 2}, limits={"ops.count": 9}))
    parsed = Parsed(html_report(compared(None, run)))
    ((_, title),) = parsed.all("title")
    assert title == "opprof: measured 2 tests, 1 within limits"
    assert [text for _, text in parsed.all("h1")] == ["measured 2 tests, 1 within limits"]
    over = simple_run(named("b", {"aten::mul": 2}, limits={"ops.count": 1}))
    ((_, title),) = Parsed(html_report(compared(None, over))).all("title")
    assert title == "opprof: REGRESSED: 1 test"


def test_a_test_has_both_sides_and_its_changes_in_words() -> None:
    parsed = Parsed(html_report(small_comparison(), history=small_history()))
    (number,) = (row["number"] for row in parsed.index["tests"] if row["node_id"] == WORSE)
    test = parsed.test(number)
    told = {(change["name"], change["label"]): change for change in test["changes"]}
    clone = told["aten::clone", "count"]
    assert (clone["base"], clone["head"], clone["change"], clone["verdict"]) == ("2", "5", "+3", "regressed")
    assert test["changes"][-1]["op"] is None
    assert test["base"]["tree"]["length"] == 5
    assert [point["value"] for point in test["trends"][0]["points"]] == [6, 6, None, 10, 10, 15]


def test_only_our_style_and_our_script_may_run() -> None:
    parsed = Parsed(html_report(small_comparison()))
    (policy,) = (
        attributes["content"]
        for attributes, _ in parsed.all("meta")
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    (script,) = (text for attributes, text in parsed.all("script") if "type" not in attributes)
    ((_, style),) = parsed.all("style")
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{_digest(script)}'"
    assert rules["style-src"] == f"'sha256-{_digest(style)}'"
    assert rules["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in policy


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_hostile_names_make_no_element_and_no_attribute() -> None:
    hostile = Parsed(html_report(hostile_comparison()))
    plain = Parsed(html_report(small_comparison()))
    assert {name for name, _ in hostile.elements} <= {name for name, _ in plain.elements}
    attributes = [value or "" for _, attributes in hostile.elements for value in attributes.values()]
    assert not any("alert" in value or "example.org" in value for value in attributes)
    notes = [text.strip() for attributes, text in hostile.all("p") if attributes.get("class") == "note"]
    assert notes[: len(HOSTILE) - 4] == list(HOSTILE[:-4])
    assert r"\u202egnp.exe" in notes


def test_the_page_is_text_that_can_be_written() -> None:
    html_report(hostile_comparison()).encode("utf-8")


@pytest.mark.parametrize(
    "made", [small_comparison(), mixed(), hostile_comparison()], ids=["small", "mixed", "hostile"]
)
def test_a_document_that_was_read_has_the_same_page(made: Comparison) -> None:
    read = comparison_from_document(comparison_to_document(made), where="it")
    assert html_report(read) == html_report(made)


def test_every_script_of_the_folder_is_in_the_page() -> None:
    scripts = importlib.resources.files("pytest_opprof.report.html").joinpath("scripts")
    used = {*page._SCRIPTS.split(), "fleet"}  # the last belongs to a fleet's page
    assert sorted(f"{name}.js" for name in used) == sorted(file.name for file in scripts.iterdir())


def test_one_run_has_a_page_without_a_base() -> None:
    parsed = Parsed(html_report(compared(None, small_comparison().head)))
    assert parsed.index["has_base"] is False
    assert [text for attributes, text in parsed.all("th") if attributes.get("scope") == "col"] == [
        "field",
        "head",
    ]


def test_an_ab_has_the_times_of_its_processes() -> None:
    found = slower()
    times = found.tests[0].times
    assert times is not None
    parsed = Parsed(html_report(found))
    assert parsed.index["tests"][0]["times"]["change_ppm"] == times.change_ppm
    assert tuple(parsed.test(0)["times"]["times"]["head_ns"]) == times.head_ns


def test_differing_environments_come_first() -> None:
    parsed = Parsed(html_report(small_comparison()))
    assert [text for _, text in parsed.all("summary")] == ["Environments differ in 1 of 3 fields"]
    rows = [text for attributes, text in parsed.all("th") if attributes.get("scope") == "row"]
    assert rows == ["cpu_model", "python", "torch"]


def test_without_jinja2_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    page._template.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(UsageError, match=r"needs jinja2: pip install 'pytest-opprof\[report\]'"):
        html_report(small_comparison())
