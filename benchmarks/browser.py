"""Drives a headless Chromium over the pipes of its DevTools protocol: no driver, no port, no library."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE_S: Final = 60.0
_ABOVE_FOUR: Final = 10
_OPTIONS: Final = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # containers and root have none; it only opens our own pages
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    # Pages are local files or come from this machine; requests to any other host fail.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
# Input.dispatchKeyEvent needs the code, number and text that a keyboard would send.
_KEYS: Final = {
    "Enter": ("Enter", 13, "\r"),
    " ": ("Space", 32, " "),
    "Tab": ("Tab", 9, ""),
    "Escape": ("Escape", 27, ""),
    "ArrowLeft": ("ArrowLeft", 37, ""),
    "ArrowUp": ("ArrowUp", 38, ""),
    "ArrowRight": ("ArrowRight", 39, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
    "Home": ("Home", 36, ""),
    "End": ("End", 35, ""),
}


class BrowserError(Exception):
    """The browser did not do what it was asked to."""


def find_browser() -> str | None:
    """The path of this machine's browser, or None."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


class Browser:
    """A Chromium process. Closing it closes its pages."""

    def __init__(self, program: str, *, profile: Path) -> None:
        """Start the program with an empty folder for its profile."""
        to_it, self._writer = os.pipe()
        self._reader, its_end = os.pipe()
        self._numbers = itertools.count(1)
        self._left = b""
        self.events: list[dict[str, Any]] = []
        # DevTools uses descriptors 3 and 4. Ours move above them, so that no dup2 overwrites one of ours.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _ABOVE_FOUR) for end in (to_it, its_end)]
        actions = [
            *((os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)),
            *((os.POSIX_SPAWN_DUP2, end, number) for end, number in zip(ends, (3, 4), strict=True)),
        ]
        arguments = [program, *_OPTIONS, f"--user-data-dir={profile}"]
        self._process = os.posix_spawn(program, arguments, os.environ, file_actions=actions)
        for end in (to_it, its_end, *ends):
            os.close(end)

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(BrowserError, OSError):
            self.ask("Browser.close")
        os.close(self._writer)
        os.close(self._reader)
        waiting = os.pidfd_open(self._process)
        if not select.select([waiting], [], [], _PATIENCE_S)[0]:
            os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(waiting)

    def ask(self, method: str, *, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and wait for its answer.

        Raises:
            BrowserError: The browser refused or exited.
        """
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        unsent = json.dumps(message).encode() + b"\0"
        while unsent:
            unsent = unsent[os.write(self._writer, unsent) :]
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                found: dict[str, Any] = answer["result"]
                return found
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._reader], [], [], _PATIENCE_S)
            piece = os.read(self._reader, 1 << 16) if ready else b""
            if not piece:
                raise BrowserError("the browser exited" if ready else "the browser does not answer")
            self._left += piece
        text, _, self._left = self._left.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        return found


@contextlib.contextmanager
def started(program: str) -> Iterator[Browser]:
    """A browser that is closed at the end."""
    with tempfile.TemporaryDirectory(prefix="opprof-browser-", ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile=Path(profile))
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """One page, with its console messages and network requests."""

    def __init__(
        self, browser: Browser, *, width: int = 1280, height: int = 900, scheme: str = "light"
    ) -> None:
        """Open an empty page; `scheme` is the preferred color scheme, ``light`` or ``dark``."""
        self._browser = browser
        self._target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.ask("Target.attachToTarget", targetId=self._target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol for this page."""
        return self._browser.ask(method, session=self._session, **parameters)

    def close(self) -> None:
        """Close the page."""
        self._browser.ask("Target.closeTarget", targetId=self._target)

    def open(self, url: str) -> None:
        """Open a URL and wait until it has loaded."""
        self.ask("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script: str) -> Any:
        """Evaluate a JavaScript expression in the page, and await it if it is a promise.

        Raises:
            BrowserError: The script threw.
        """
        answer = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            thrown = answer["exceptionDetails"].get("exception", {})
            raise BrowserError(
                f"{script[:200]}: {thrown.get('description') or answer['exceptionDetails']['text']}"
            )
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until a JavaScript expression is true, checking every 5 ms.

        Raises:
            BrowserError: It never was.
        """
        patience_ms = _PATIENCE_S * 900  # 90 % of ours, so that the page gives up before `_next` does
        came_true = self.run(
            f"""new Promise((done) => {{
                const until = performance.now() + {patience_ms};
                const look = () => {{
                    if ({condition}) done(true);
                    else if (performance.now() > until) done(false);
                    else setTimeout(look, 5);
                }};
                look();
            }})"""
        )
        if not came_true:
            raise BrowserError(f"this never came true: {condition}")

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            code, number, text = _KEYS[key]
            common = {"key": key, "code": code, "windowsVirtualKeyCode": number}
            self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
            self.ask("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        """Type text where the focus is."""
        self.ask("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Click the middle of an element with the mouse."""
        place = self.run(
            f"""(() => {{
                const element = document.querySelector({json.dumps(selector)});
                element.scrollIntoView({{block: "center"}});
                const {{x, y, width, height}} = element.getBoundingClientRect();
                return [x + width / 2, y + height / 2];
            }})()"""
        )
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.ask(
                "Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1
            )

    def _said(self, method: str) -> list[dict[str, Any]]:
        self.run("0")  # all earlier events have arrived once this is answered
        return [
            event["params"]
            for event in self._browser.events
            if event.get("sessionId") == self._session and event["method"] == method
        ]

    @property
    def complaints(self) -> list[str]:
        """All console and log messages: errors, warnings, violations of the page's content policy."""
        return [
            *(str(event["args"]) for event in self._said("Runtime.consoleAPICalled")),
            *(str(event["exceptionDetails"]) for event in self._said("Runtime.exceptionThrown")),
            *(event["entry"]["text"] for event in self._said("Log.entryAdded")),
        ]

    @property
    def requests(self) -> list[str]:
        """The URLs that the page requested, its own first."""
        return [event["request"]["url"] for event in self._said("Network.requestWillBeSent")]
