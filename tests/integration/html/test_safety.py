"""The page of an untrusted comparison does no harm, and every page is accessible."""

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from support.documents.compared import compared
from support.documents.strategies import simple_run, simple_test
from support.html.pages import hostile_comparison, small_comparison
from support.html.report_tabs import texts, written

from benchmarks.browser import Browser, BrowserError, Tab
from pytest_opprof.report.html import page
from pytest_opprof.report.html.page import html_report
from pytest_opprof.report.text import escaped
from pytest_opprof.units import Unit, format_change, format_precise_duration, format_quantity

AXE = Path(__file__).parents[3] / "build/browser/node_modules/axe-core/axe.min.js"
MANY = 20_000 if os.environ.get("OPPROF_COUNTS") == "all" else 300
UNPRINTABLE = (0, 9, 10, 13, 0x1B, 0x7F, 0xA0, 0x85, 0x200B, 0x202E, 0x2028, 0x2066, 0xD800, 0xFEFF, 0xE0041)
# Boundaries between units, and values halfway between two roundings.
NEAR_A_BORDER = (
    0,
    1,
    250,
    949,
    950,
    999,
    1_000,
    1_023,
    1_024,
    1_125,
    1_250,
    1_350,
    9_995,
    12_250,
    12_750,
    99_950,
    122_500,
    999_500,
    999_949,
    999_950,
    1_250_000,
)


def test_hostile_names_stay_text(browser: Browser, tmp_path: Path) -> None:
    tab = Tab(browser)
    url = written(tmp_path, html_report(hostile_comparison()))
    tab.open(url)
    for number in range(3):
        tab.run(f"location.hash = '#test-{number}'")
        tab.wait("document.querySelector('article .boxes')")
        tab.run("document.querySelectorAll('.opens').forEach((one) => one.click())")
        inert = "document.querySelectorAll('main :is(img, script, iframe, object, embed, b, i, style, link, base, form)')"
        assert tab.run(f"{inert}.length") == 0
        assert tab.run(
            "[...document.querySelectorAll('main a')].every((one) => one.getAttribute('href').startsWith('#'))"
        )
        assert "<img src=x onerror=alert(1)>" in "".join(texts(tab, "[aria-label=Ops] th"))
        assert "\u202e" not in tab.run("document.body.innerText")
    assert tab.complaints == []
    assert tab.requests[0] == url
    assert {request.partition("#")[0] for request in tab.requests} == {url}
    tab.close()


def test_a_copied_command_is_the_shown_one(browser: Browser, tmp_path: Path) -> None:
    evil = "test_a.py::test_a[\x1b[201~\n\u202eid]"
    base, head = (simple_run(simple_test({"aten::mul": many}, node_id=evil)) for many in (1, 2))
    tab = Tab(browser)
    tab.open(written(tmp_path, html_report(compared(base, head))) + "#test-0")
    tab.wait("document.querySelector('article .command button')")
    browser.ask("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    tab.ask("Page.bringToFront")
    tab.click("article .command button")
    tab.wait("document.querySelector('article .command [role=status]').textContent")
    assert tab.run("navigator.clipboard.readText()") == f"pytest '{escaped(evil)}' --opprof-baseline=NAME"
    tab.close()


def test_the_page_refuses_markup_and_requests(browser: Browser, small: str) -> None:
    tab = Tab(browser)
    tab.open(small)
    with pytest.raises(BrowserError, match="TrustedHTML"):
        tab.run("document.body.innerHTML = '<img src=x>'")
    with pytest.raises(BrowserError, match="Failed to fetch"):
        tab.run("fetch('http://127.0.0.1:9/')")
    assert any("Content Security Policy" in complaint for complaint in tab.complaints)
    with pytest.raises(BrowserError, match=r"TrustedScript|Content Security Policy"):
        tab.run(
            "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.got = 1'}))"
        )
    assert tab.requests == [small]
    tab.close()


def test_damaged_file_is_reported(browser: Browser, tmp_path: Path) -> None:
    text = html_report(small_comparison())
    at = text.index('id="packed-0"') + 60
    tab = Tab(browser)
    tab.open(written(tmp_path, text[:at] + "AAAA" + text[at + 4 :]) + "#test-0")
    tab.wait("document.querySelector('[role=alert]')")
    assert "cannot be shown" in texts(tab, "[role=alert]")[0]
    tab.close()


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("dark", 360),
        pytest.param("light", 360, marks=pytest.mark.slow),
        pytest.param("dark", 1280, marks=pytest.mark.slow),
        pytest.param("light", 1280, marks=pytest.mark.slow),
    ],
)
@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make axe (needs npm)")
def test_axe_finds_nothing(browser: Browser, small: str, scheme: str, width: int) -> None:
    tab = Tab(browser, width=width, scheme=scheme)
    tab.open(small)
    # As DevTools does, bypassing the page's policy, because axe makes its own elements.
    tab.run(AXE.read_text(encoding="utf-8"))
    for place in ("", "#test-0"):
        tab.run(f"location.hash = '{place}'")
        tab.wait(f"Boolean(document.querySelector('article')) === {json.dumps(bool(place))}")
        tab.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        tab.run("document.querySelectorAll('.opens').forEach((one) => one.click())")
        found: dict[str, Any] = tab.run("axe.run()")
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]] == []
        assert len(found["passes"]) > 15
        assert tab.run("document.documentElement.scrollWidth") <= width
    tab.close()


def test_names_read_as_they_do_on_a_terminal(browser: Browser) -> None:
    names = ["plain", "a b", "日本é", *(f"<{chr(code)}>" for code in UNPRINTABLE)]
    tab = Tab(browser)
    tab.run((Path(page.__file__).with_name("scripts") / "dom.js").read_text(encoding="utf-8"))
    assert tab.run(f"{json.dumps(names)}.map(shown)") == [escaped(name) for name in names]
    tab.close()


def test_numbers_read_as_they_do_on_a_terminal(browser: Browser) -> None:
    source = random.Random(7)  # noqa: S311 - numbers to test with
    drawn = [round(10 ** source.uniform(0, 15)) for _ in range(MANY)]
    values = [*NEAR_A_BORDER, *(-value for value in NEAR_A_BORDER), *drawn]
    tab = Tab(browser)
    script = Path(page.__file__).with_name("scripts") / "units.js"
    tab.run(script.read_text(encoding="utf-8"))
    for unit in Unit:
        found = tab.run(f"{values}.map((value) => [quantity(value, '{unit}'), difference(value, '{unit}')])")
        assert found == [
            [format_quantity(value, unit=unit), format_change(value, unit=unit)] for value in values
        ]
    assert tab.run(f"{values}.map(preciseTime)") == [format_precise_duration(value) for value in values]
    tab.close()
