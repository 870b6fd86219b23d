"""The list of tests of the HTML report, in a browser."""

from pathlib import Path

import pytest
from support.documents.compared import compared, named
from support.documents.strategies import calling, simple_run
from support.html.pages import NEW, OTHER, SAME, WORSE
from support.html.report_tabs import fill_in, shown_tests, texts, written

from benchmarks.browser import Browser, Tab
from pytest_opprof.report.html.page import html_report


def test_the_list_begins_with_the_failures(tab: Tab) -> None:
    assert shown_tests(tab) == [WORSE, OTHER, NEW, SAME]
    assert texts(tab, "h1") == ["REGRESSED 1 of 4 tests"]


def test_causes_stand_above_the_tests_and_lead_to_them(tab: Tab) -> None:
    assert texts(tab, "h2") == ["Causes", "Tests"]
    assert texts(tab, ".common h3") == ["Cause 1"]
    assert texts(tab, ".common .of-cause li") == ["test_worse[bf16] 18 ops (+8)"]
    assert texts(tab, ".common .command .code") == [f"opprof accept '{WORSE}' --reason \"...\""]
    tab.click(".common .of-cause a")
    tab.wait("document.activeElement.id === 'opened'")
    assert WORSE in texts(tab, "h2")[0]


def test_list_shows_all_tests_of_a_cause(browser: Browser, tmp_path: Path) -> None:
    failing = [f"test_{at}" for at in range(25)]
    base, head = (
        simple_run(
            *(named(name, {"aten::mul": count}) for name in failing),
            named("test_add", {"aten::add": count}),
            named("test_same", {"aten::mul": 1}),
        )
        for count in (1, 2)
    )
    tab = Tab(browser)
    tab.open(written(tmp_path, html_report(compared(base, head))))
    causes = texts(tab, ".common h3")
    assert causes == ["Cause 1", "Cause 2"]
    assert texts(tab, ".of-cause li")[20:] == ["and 5 more", "test_add 2 ops (+1)"]
    tab.click(".of-cause button")
    assert texts(tab, ".controls [role=status]") == ["25 of 27 tests"]
    assert {name.rpartition("::")[2] for name in shown_tests(tab)} == set(failing)
    assert tab.run("document.activeElement.value") == "cause 1"
    tab.close()


@pytest.mark.parametrize(("width", "tables"), [(400, ".common .scroll"), (820, ".scroll")])
def test_no_column_is_off_the_screen(browser: Browser, tmp_path: Path, width: int, tables: str) -> None:
    node = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
    base, head = (
        simple_run(
            calling(
                ("Optimizer.step", 201),
                (node, 1, ("aten::clone", 100 + more, ("aten::empty_strided", 100 + more))),
                node_id="tests/test_model.py::test_a_training_step_of_the_whole_model[bfloat16]",
            )
        )
        for more in (0, 2)
    )
    tab = Tab(browser, width=width)
    tab.open(written(tmp_path, html_report(compared(base, head))))
    assert "its backward" in texts(tab, ".common td")
    wide = f"[...document.querySelectorAll('{tables}')].filter((one) => one.scrollWidth > one.clientWidth)"
    assert tab.run(f"{wide}.map((one) => one.textContent)") == []
    tab.close()


def test_a_heading_sorts_and_says_so(tab: Tab) -> None:
    tab.click("[aria-label=Tests] thead tr:last-child th:nth-child(4) button")
    assert shown_tests(tab)[0] == NEW
    assert tab.run(
        "document.querySelector('[aria-label=Tests] thead tr:last-child th:nth-child(4)').ariaSort"
    ) == ("descending")
    tab.click("[aria-label=Tests] thead tr:last-child th:nth-child(4) button")
    assert shown_tests(tab)[-1] == NEW
    assert tab.run("document.querySelectorAll('th[aria-sort=ascending]').length") == 1


def test_tests_are_filtered_by_text_and_by_verdict(tab: Tab) -> None:
    fill_in(tab, "Filter tests", "TEST_MODEL")
    assert shown_tests(tab) == [WORSE, OTHER, SAME]
    assert texts(tab, ".controls [role=status]") == ["3 of 4 tests"]
    tab.run(
        "[...document.querySelectorAll('.chips button')].find((one) => one.textContent === 'PASS 1').click()"
    )
    assert shown_tests(tab) == [SAME]
    assert tab.run("document.querySelector('.chips [aria-pressed=true]').textContent") == "PASS 1"


def test_everything_is_reached_by_keyboard(tab: Tab) -> None:
    for _ in range(60):
        tab.press("Tab")
        if tab.run("document.activeElement.matches('[aria-label=Tests] a')"):
            break
    tab.press("Enter")
    tab.wait("document.activeElement.id === 'opened'")
    assert WORSE in texts(tab, "h2")[0]
    tab.run("history.back()")
    tab.wait("document.activeElement.tagName === 'A'")
    assert tab.run("document.activeElement.textContent") == WORSE


def test_theme_follows_the_system_until_chosen(browser: Browser, small: str) -> None:
    tab = Tab(browser, scheme="dark")
    tab.open(small)
    back = "getComputedStyle(document.body).backgroundColor"
    assert tab.run(back) == "rgb(15, 20, 25)"
    tab.click("#theme")
    assert (tab.run(back), texts(tab, "#theme")) == ("rgb(255, 255, 255)", ["Theme: light"])
    tab.click("#theme")
    assert tab.run(back) == "rgb(15, 20, 25)"
    tab.close()
