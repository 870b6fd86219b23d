"""One test of the HTML report, opened in a browser."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.documents.compared import cloning, compared, slower
from support.documents.strategies import calling, simple_run, simple_test
from support.html.pages import WORSE
from support.html.report_tabs import boxes, fill_in, open_test, rows_of, texts, written

from benchmarks.browser import Browser, Tab
from benchmarks.made_comparison import made_comparison
from pytest_opprof.compare.comparison import LimitResult
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.report.html.page import html_report
from pytest_opprof.results.run import CaptureStats
from pytest_opprof.results.samples import Samples


def test_changed_cells_have_reasons(tab: Tab) -> None:
    open_test(tab, WORSE)
    changes = {(row[0], row[1]): row[2:6] for row in rows_of(tab, "What changed")}
    assert changes["aten::clone", "count"] == ["2", "5", "+3", "REGRESSED"]
    assert changes["aten::empty", "count"][:3] == ["0", "5", "+5"]
    ops = {row[0]: row for row in rows_of(tab, "Ops")}
    assert ops["aten::clone"][1:6] == ["REGRESSED", "op", "2", "5", "+3"]
    assert ops["aten::linear"][3:6] == ["4", "4", ""]
    totals = {row[0]: row for row in rows_of(tab, "Totals")}
    assert totals["ops"][1:4] == ["10", "18", "+8"]


def test_ops_that_changed_stand_first(tab: Tab) -> None:
    open_test(tab, WORSE)
    names = [row[0] for row in rows_of(tab, "Ops")]
    assert set(names[:2]) == {"aten::clone", "aten::empty"}
    assert {"aten::linear", "aten::addmm", "forward"} <= set(names[2:])


def test_times_say_that_no_gate_holds_them(tab: Tab) -> None:
    open_test(tab, WORSE)
    groups = texts(tab, "[aria-label=Ops] .groups th")
    assert {"count", "self CPU, not gated", "CPU total, not gated"} <= set(groups)
    assert "self CPU, not gated" in [row[0] for row in rows_of(tab, "Totals")]


def test_an_op_of_a_cause_leads_to_its_box(tab: Tab) -> None:
    open_test(tab, WORSE)
    tab.run(
        "[...document.querySelectorAll('.cause button')].find((one) => one.textContent === 'aten::empty').click()"
    )
    assert tab.run("document.activeElement.textContent") == "+ empty"
    assert texts(tab, ".flame .boxinfo")[0].startswith("aten::empty · calls 0 → 5 (+5)")
    assert float(tab.run("document.activeElement.style.width").rstrip("%")) >= 10


def test_causes_and_limits_are_sorted_by_value(browser: Browser, tmp_path: Path) -> None:
    comparison = cloning()
    (test,) = comparison.tests
    sizes = (900 << 10, 1200 << 10, 30 << 10)
    changes = tuple(
        replace(
            test.changes[1],
            op=f"aten::op{at}",
            metric="cpu_memory",
            head=Samples.constant(size, steps=3),
        )
        for at, size in enumerate(sizes)
    )
    limits = tuple(
        LimitResult(
            path=f"aten::op{at}.cpu_memory",
            limit="<= 1 KiB",
            value=Samples.constant(size, steps=3),
            verdict=Verdict.REGRESSED,
        )
        for at, size in enumerate(sizes)
    )
    found = replace(test, changes=changes, limits=limits)
    tab = Tab(browser)
    tab.open(written(tmp_path, html_report(replace(comparison, tests=(found,)))) + "#test-0")
    tab.wait("document.querySelector('article')")
    sorted_sizes = ["1.2 MiB", "900.0 KiB", "30.0 KiB"]
    for label, title in (
        ("Ops of Called by the test; no line is known: call sites were not recorded", "head"),
        ("Limits", "measured"),
    ):
        tab.run(
            f"""[...document.querySelectorAll('[aria-label="{label}"] thead button')].find(
                (one) => one.textContent === '{title}').click()"""
        )
        assert [row[2] for row in rows_of(tab, label)] == sorted_sizes
    tab.close()


def test_a_command_is_copied(browser: Browser, small: str) -> None:
    tab = Tab(browser)
    tab.open(small)
    browser.ask("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    open_test(tab, WORSE)
    tab.ask("Page.bringToFront")
    tab.click(".command button")
    tab.wait("document.querySelector('.command [role=status]').textContent")
    assert texts(tab, ".command [role=status]")[0] == "copied"
    assert tab.run("navigator.clipboard.readText()") == f"pytest '{WORSE}' --opprof-baseline=main"
    tab.run("navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed'))")
    tab.click(".command button")
    tab.wait("document.querySelector('.command [role=status]').textContent.startsWith('selected')")
    assert tab.run("String(getSelection())") == f"pytest '{WORSE}' --opprof-baseline=main"
    tab.close()


def test_frames_that_only_pass_a_call_on_are_folded(browser: Browser, tmp_path: Path) -> None:
    module = "torch/nn/modules/module.py: Module"
    inner = (f"{module}._call_impl", 2, ("model.py: Net.forward", 2, ("aten::relu", 2)))
    run = simple_run(calling((f"{module}._wrapped_call_impl", 2, inner), node_id=WORSE))
    wrapped = simple_run(calling(("test", 1, (f"{module}._wrapped_call_impl", 2, inner)), node_id=WORSE))
    tab = Tab(browser)
    tab.open(written(tmp_path, html_report(compared(run, wrapped))))
    open_test(tab, WORSE)
    tab.run("document.querySelector('.flame input[value=head]').click()")
    assert boxes(tab) == ["ProfilerStep*", "test", "model.py: Net.forward", "relu"]
    tab.close()


def test_ops_are_sorted_filtered_and_opened(tab: Tab) -> None:
    open_test(tab, WORSE)
    fill_in(tab, "Filter ops", "aten::")
    names = [row[0] for row in rows_of(tab, "Ops")]
    assert "forward" not in names
    tab.click("[aria-label=Ops] thead tr:last-child th:nth-child(6) button")
    assert rows_of(tab, "Ops")[0][0] == "aten::empty"
    tab.run("document.querySelector('[aria-label=Ops] .opens').click()")
    assert tab.run("document.querySelector('[aria-label=Ops] .opens').ariaExpanded") == "true"
    assert "same in every step" in texts(tab, ".opdetail")[0]
    tab.run("document.querySelector('.controls input[type=checkbox]').click()")
    assert {row[0] for row in rows_of(tab, "Ops")} >= {"aten::empty", "aten::clone"}
    assert "aten::addmm" not in {row[0] for row in rows_of(tab, "Ops")}


def test_each_steps_value_is_drawn_and_labelled(tab: Tab) -> None:
    open_test(tab, WORSE)
    tab.run("[...document.querySelectorAll('.opens')].find((one) => one.textContent === 'forward').click()")
    labels = tab.run("[...document.querySelectorAll('.opdetail svg')].map((one) => one.ariaLabel)")
    assert labels == ["Steps: base: 1.0 µs; head: 1.0 µs, 5.0 µs, 3.0 µs"]
    assert tab.run("document.querySelectorAll('.opdetail svg circle').length") == 3


def test_the_call_tree_shows_what_is_new(tab: Tab) -> None:
    open_test(tab, WORSE)
    assert boxes(tab) == ["ProfilerStep*", "forward", "linear", "addmm", "clone", "+ empty"]
    clone = tab.run(
        "[...document.querySelectorAll('.flame .box')].find((one) => one.textContent === 'clone')"
        ".getAttribute('aria-label')"
    )
    assert clone.startswith("aten::clone · calls 2 → 5 (+3)")
    assert tab.run("document.querySelector('.flame .onesided').className").split()[1] == "up3"
    tab.run("document.querySelector('.flame input[value=base]').click()")
    assert boxes(tab) == ["ProfilerStep*", "forward", "linear", "addmm", "clone"]


def test_a_click_zooms_and_escape_shows_all(tab: Tab) -> None:
    open_test(tab, WORSE)
    width = "document.querySelector('.flame [data-box=\"2\"]').style.width"
    before = tab.run(width)
    tab.click(".flame [data-box='2']")
    assert (before, tab.run(width)) == ("40%", "100%")
    assert "clone" not in boxes(tab)
    tab.press("Escape")
    assert tab.run(width) == before
    assert "clone" in boxes(tab)


def test_arrows_go_from_box_to_box(tab: Tab) -> None:
    open_test(tab, WORSE)
    tab.run("document.querySelector('.flame [tabindex=\"0\"].box').focus()")
    tab.press("ArrowDown", "ArrowDown", "ArrowRight")
    assert tab.run("document.activeElement.textContent") == "clone"
    assert texts(tab, ".flame .boxinfo")[0].startswith("aten::clone")
    tab.press("Enter", "ArrowUp", "ArrowUp", "ArrowUp")
    assert tab.run("document.activeElement.textContent") == "ProfilerStep*"
    assert tab.run("document.querySelectorAll('.flame .box[tabindex=\"0\"]').length") == 1


def test_ops_are_found_in_the_call_tree(tab: Tab) -> None:
    open_test(tab, WORSE)
    fill_in(tab, "Find", "addmm")
    assert texts(tab, ".flame .hit") == ["addmm"]
    assert texts(tab, ".flame [role=status]") == ["1 found, 20.0 % of the width"]
    tab.run(
        "[...document.querySelectorAll('.opens')].find((one) => one.textContent === 'aten::clone').click()"
    )
    tab.run("document.querySelector('.opdetail button').click()")
    assert texts(tab, ".flame .hit") == ["clone"]


@pytest.mark.slow
def test_the_history_shows_where_a_metric_changed(tab: Tab) -> None:
    open_test(tab, WORSE)
    label = tab.run("document.querySelector('.trends').ariaLabel")
    assert label == "ops: 5 runs, changed to 10 at 2026-01-04 0000004, 15 at 2026-01-06 0000006"
    runs = rows_of(tab, "Runs of ops")
    assert runs[0] == ["2026-01-06 0000006", "15", "changed", "torch"]
    assert runs[3][1] == "?"


def test_printing_shows_collapsed_rows(browser: Browser, tmp_path: Path) -> None:
    tab = Tab(browser)
    tab.open(written(tmp_path, html_report(made_comparison(tests=1, ops=60))) + "#test-0")
    tab.wait("document.querySelector('[aria-label=Ops]')")
    shown = len(rows_of(tab, "Ops"))
    tab.run("dispatchEvent(new Event('beforeprint'))")
    assert shown == 40 < len(rows_of(tab, "Ops"))
    tab.close()


def test_a_closed_test_leaves_no_tables(tab: Tab) -> None:
    def tables() -> int:
        kind = tab.ask("Runtime.evaluate", expression="HTMLTableElement.prototype")["result"]["objectId"]
        found = tab.ask("Runtime.queryObjects", prototypeObjectId=kind)["objects"][
            "objectId"
        ]  # collects garbage
        asked = tab.ask(
            "Runtime.callFunctionOn",
            objectId=found,
            functionDeclaration="function () { return this.length; }",
            returnByValue=True,
        )
        return int(asked["result"]["value"])

    def back() -> None:
        tab.run("history.back()")
        tab.wait("document.querySelector('[aria-label=Tests]')")

    before = tables()
    for _ in range(2):
        open_test(tab, WORSE)
        back()
    # A page that is still drawing holds for a moment what it no longer shows.
    assert any(tables() == before for _ in range(200))


def test_an_ab_shows_each_process(browser: Browser, tmp_path: Path) -> None:
    tab = Tab(browser)
    tab.open(written(tmp_path, html_report(slower())))
    times = {row[1]: row[3:6] for row in rows_of(tab, "Tests")}
    assert times["tests/test_a.py::test_1"] == ["4.00 ms", "4.37 ms", "+9.4 %"]
    open_test(tab, "tests/test_a.py::test_1")
    tab.wait("document.querySelector('.dots')")
    assert tab.run("document.querySelectorAll('.dots circle.head').length") == 24
    assert tab.run("document.querySelectorAll('.dots rect.base').length") == 24
    assert "base, 12 processes, lower quartile 4.00 ms" in texts(tab, ".dots text.axis")
    assert {row[0] for row in rows_of(tab, "Times of ops")} == {"aten::addmm", "load"}
    assert tab.complaints == []
    tab.close()


def test_dropped_events_are_shown(browser: Browser, tmp_path: Path) -> None:
    lossy = simple_test({"aten::mul": 1}, node_id=WORSE, capture=CaptureStats(dropped=12))
    tab = Tab(browser)
    tab.open(written(tmp_path, html_report(compared(None, simple_run(lossy)))))
    open_test(tab, WORSE)
    assert ["lacking", "Events not recorded: 12 (they are missing from this table)"] in rows_of(
        tab, "Measurement"
    )
    tab.close()


@pytest.mark.slow
def test_a_page_of_500_tests_is_small_and_opens_without_complaint(browser: Browser, tmp_path: Path) -> None:
    text = html_report(made_comparison(tests=500, ops=200))
    assert len(text) < 15_000_000
    tab = Tab(browser)
    url = written(tmp_path, text)
    tab.open(url)
    assert texts(tab, ".controls [role=status]") == ["500 of 500 tests"]
    tab.run("document.querySelector('[aria-label=Tests] a').click()")
    tab.wait("document.querySelectorAll('.flame .box').length > 100")
    assert (tab.complaints, {request.partition("#")[0] for request in tab.requests}) == ([], {url})
    tab.close()
