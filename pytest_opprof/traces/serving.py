"""Serve one trace from loopback to Perfetto's page until it has been fetched.

ui.perfetto.dev reads a trace in the browser and sends it nowhere. Its own policy lets it fetch only from
``http://127.0.0.1:9001`` (Perfetto's documentation, "Deep linking to Perfetto UI"). We serve one file, under
a path that cannot be guessed, to that page's origin.
"""

from __future__ import annotations

import errno
import http.server
import secrets
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from pytest_opprof.errors import StoreError, UsageError
from pytest_opprof.regular_files import open_regular

PERFETTO: Final = "https://ui.perfetto.dev"
PORT: Final = 9001
_HOST: Final = "127.0.0.1"
_POLL_S: Final = 0.05  # how soon it ends after the file was fetched
_PATIENCE_S: Final = 60  # for a silent connection: browsers open some in advance


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """The page that shows the trace."""

    url: str = PERFETTO
    port: int = PORT  # the local port that the page may fetch from; 0 for any free one

    @property
    def origin(self) -> str:
        """The page's origin, as browsers send it; a `UsageError` if the URL is not that of a page."""
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise UsageError(f"{self.url}: no page: write it like {PERFETTO}")
        return f"{parts.scheme}://{parts.netloc}"

    def link(self, trace_url: str) -> str:
        """The address of the page with a trace opened in it."""
        return f"{self.url.rstrip('/')}/#!/?url={quote(trace_url, safe=':/')}"


def serve_trace(path: Path, viewer: Viewer, *, ready: Callable[[str], object]) -> None:
    """Serve a file until the page has fetched it once, or the user ends it.

    `ready` is called with the page's address, with the trace in it, once the trace can be fetched.
    """
    origin = viewer.origin
    try:
        with open_regular(path):
            pass
        server = _Server(path, origin=origin, port=viewer.port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise StoreError(
                f"port {viewer.port} of {_HOST} is taken: end what listens there (another opprof view?), or "
                f"drag {path} into {viewer.url}"
            ) from error
        raise StoreError(f"{path} cannot be served: {error.strerror or error}") from error
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(_POLL_S,), daemon=True)
        thread.start()
        try:
            ready(viewer.link(server.url))
            server.fetched.wait()
        finally:
            server.shutdown()
            thread.join()


class _Server(http.server.ThreadingHTTPServer):
    """Serves one path. `fetched` is set after the first download."""

    daemon_threads = True
    block_on_close = False  # do not wait for silent connections
    allow_reuse_address = True

    def __init__(self, path: Path, *, origin: str, port: int) -> None:
        super().__init__((_HOST, port), _Handler)
        self.trace = path
        self.origin = origin
        self.path = f"/{secrets.token_urlsafe(16)}/{quote(path.name)}"
        # A page of another site whose name resolves to this address sends that name (DNS rebinding).
        self.hosts = {f"{name}:{self.server_port}" for name in (_HOST, "localhost")}
        self.fetched = threading.Event()

    @property
    def url(self) -> str:
        return f"http://{_HOST}:{self.server_port}{self.path}"

    def handle_error(self, *_: Any) -> None:
        """Ignore it: a browser that disconnects is not the user's problem."""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    timeout = _PATIENCE_S
    server_version = "opprof"
    sys_version = ""

    def do_GET(self) -> None:
        refusal = self._refusal()
        if refusal is not None:
            self.send_error(refusal)
            return
        with open_regular(self.server.trace) as file:
            size = file.seek(0, 2)
            file.seek(0)
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(size))
            self.end_headers()
            shutil.copyfileobj(file, self.wfile)
        self.wfile.flush()
        self.server.fetched.set()

    def _refusal(self) -> HTTPStatus | None:
        if self.headers.get("Host") not in self.server.hosts:
            return HTTPStatus.MISDIRECTED_REQUEST
        if self.headers.get("Origin", self.server.origin) != self.server.origin:
            return HTTPStatus.FORBIDDEN
        if not secrets.compare_digest(self.path.encode(), self.server.path.encode()):
            return HTTPStatus.NOT_FOUND
        return None

    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", self.server.origin)
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Connection", "close")
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Print nothing: requests are not the output of a command."""
