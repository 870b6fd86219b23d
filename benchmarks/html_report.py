"""The HTML report of 500 tests: its size, and how long a reader waits for it in a browser."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.browser import Tab, find_browser, started
from benchmarks.made_comparison import made_comparison
from benchmarks.table import Row
from pytest_opprof.report.html.page import html_report

if TYPE_CHECKING:
    from benchmarks.browser import Browser

_TESTS: Final = 500
_OPS: Final = 200
_MOST_MB: Final = 15
_MOST_S: Final = 3
# Scripts that act as a reader does, and conditions that hold when the page has responded.
_LIST: Final = "document.querySelectorAll('main tbody tr').length > 1"
_SORT: Final = "document.querySelector('thead tr:last-child th:nth-child(4) button').click()"
_FILTER: Final = """(() => {
    const field = document.querySelector('.field input');
    field.value = 'depth=7';
    field.dispatchEvent(new Event('input'));
})()"""
_OPEN: Final = "document.querySelector('main tbody a').click()"
_FLAME: Final = "document.querySelectorAll('.flame .box').length > 100"
_FRAME: Final = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"


def rows(*, quick: bool) -> list[Row]:
    """Write the page and time its use."""
    program = find_browser()
    if program is None:
        print("html: skipped, because this machine has no Chromium to open the page")
        return []
    comparison = made_comparison(tests=_TESTS // 10 if quick else _TESTS, ops=_OPS)
    begin = time.perf_counter()
    text = html_report(comparison)
    took_s = time.perf_counter() - begin
    size = len(text.encode("utf-8"))
    with tempfile.TemporaryDirectory(prefix="opprof-bench-") as folder, started(program) as browser:
        path = Path(folder) / "report.html"
        path.write_text(text, encoding="utf-8")
        seconds = _read(browser, path.as_uri())
    what = f"HTML report of {len(comparison.tests)} tests of {_OPS} ops"
    peer = f"{len(text) / len(comparison.tests) / 1000:.0f} kB a test"
    done = ", ".join(f"{name} {value:.2f} s" for name, value in seconds.items())
    return [
        Row(
            what=f"{what}: size",
            ours=f"written in {took_s:.1f} s",
            peer=peer,
            figure=size / 1e6,
            at_most=_MOST_MB,
            unit="MB",
        ),
        Row(
            what=f"{what}: opened, sorted, filtered, a test opened, its call tree drawn",
            ours=done,
            peer="headless Chromium",
            figure=sum(seconds.values()),
            at_most=_MOST_S,
            unit="s",
        ),
    ]


def _read(browser: Browser, url: str) -> dict[str, float]:
    """The seconds of each action of a reader, one after the other."""
    tab = Tab(browser)
    seconds = {}
    begin = time.perf_counter()
    tab.open(url)
    tab.wait(_LIST)
    seconds["open"] = time.perf_counter() - begin
    for name, script in (("sort", _SORT), ("filter", _FILTER), ("test", _OPEN)):
        begin = time.perf_counter()
        tab.run(script)
        if name == "test":
            tab.wait(_FLAME)
        tab.run(_FRAME)
        seconds[name] = time.perf_counter() - begin
    if tab.complaints:
        raise RuntimeError(f"the page complains: {tab.complaints}")
    tab.close()
    return seconds
