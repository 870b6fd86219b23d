"""A browser for the tests of this folder."""

from collections.abc import Iterator

import pytest
from support.html.pages import small_comparison, small_history
from support.html.report_tabs import written

from benchmarks.browser import Browser, Tab, find_browser, started
from pytest_opprof.report.html.page import html_report


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        pytest.skip("no chromium on this machine (Debian: apt install chromium)")
    with started(program) as found:
        yield found


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("small"), html_report(small_comparison(), history=small_history()))


@pytest.fixture
def tab(browser: Browser, small: str) -> Iterator[Tab]:
    """The list of the small comparison; any complaint of the page fails the test."""
    found = Tab(browser)
    found.open(small)
    yield found
    assert found.complaints == []
    assert found.requests == [small]
    found.close()
